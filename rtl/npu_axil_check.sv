// Purpose: assertions on the AXI4-Lite port: what is valid and not ready stays. Passive, simulation
// only; npu_regs carries one.
// Latency and backpressure: none.

module npu_axil_check (
  input logic                       clk_i,
  input logic                       rst_ni,
  input logic [npu_pkg::REG_AW-1:0] awaddr_i,
  input logic                       awvalid_i,
  input logic                       awready_i,
  input logic [               31:0] wdata_i,
  input logic [                3:0] wstrb_i,
  input logic                       wvalid_i,
  input logic                       wready_i,
  input logic [                1:0] bresp_i,
  input logic                       bvalid_i,
  input logic                       bready_i,
  input logic [npu_pkg::REG_AW-1:0] araddr_i,
  input logic                       arvalid_i,
  input logic                       arready_i,
  input logic [               31:0] rdata_i,
  input logic [                1:0] rresp_i,
  input logic                       rvalid_i,
  input logic                       rready_i
);

  aw_stable :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   awvalid_i && !awready_i |=> awvalid_i && $stable(
      awaddr_i
  ))
  else $error("npu_regs: write address changed while valid and not ready");
  w_stable :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   wvalid_i && !wready_i |=> wvalid_i && $stable(
      {wdata_i, wstrb_i}
  ))
  else $error("npu_regs: write data changed while valid and not ready");
  b_stable :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   bvalid_i && !bready_i |=> bvalid_i && $stable(
      bresp_i
  ))
  else $error("npu_regs: write response changed while valid and not ready");
  ar_stable :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   arvalid_i && !arready_i |=> arvalid_i && $stable(
      araddr_i
  ))
  else $error("npu_regs: read address changed while valid and not ready");
  r_stable :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   rvalid_i && !rready_i |=> rvalid_i && $stable(
      {rdata_i, rresp_i}
  ))
  else $error("npu_regs: read data changed while valid and not ready");

endmodule
