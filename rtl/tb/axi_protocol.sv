// Assertions on an AXI4 port: payload and valid stable until ready on all five channels, bursts of
// full width that never cross 4 KiB, WLAST at the right beat. Passive; simulation only.
module axi_protocol #(
  parameter  int unsigned DataWidth = 64,
  parameter  int unsigned AddrWidth = 40,
  parameter  int unsigned IdWidth   = 2,
  localparam int unsigned StrbWidth = DataWidth / 8
) (
  input logic                 clk_i,
  input logic                 rst_ni,
  input logic [  IdWidth-1:0] awid_i,
  input logic [AddrWidth-1:0] awaddr_i,
  input logic [          7:0] awlen_i,
  input logic [          2:0] awsize_i,
  input logic [          1:0] awburst_i,
  input logic                 awvalid_i,
  input logic                 awready_i,
  input logic [DataWidth-1:0] wdata_i,
  input logic [StrbWidth-1:0] wstrb_i,
  input logic                 wlast_i,
  input logic                 wvalid_i,
  input logic                 wready_i,
  input logic [  IdWidth-1:0] bid_i,
  input logic [          1:0] bresp_i,
  input logic                 bvalid_i,
  input logic                 bready_i,
  input logic [  IdWidth-1:0] arid_i,
  input logic [AddrWidth-1:0] araddr_i,
  input logic [          7:0] arlen_i,
  input logic [          2:0] arsize_i,
  input logic [          1:0] arburst_i,
  input logic                 arvalid_i,
  input logic                 arready_i,
  input logic [  IdWidth-1:0] rid_i,
  input logic [DataWidth-1:0] rdata_i,
  input logic [          1:0] rresp_i,
  input logic                 rlast_i,
  input logic                 rvalid_i,
  input logic                 rready_i,
  input logic                 last_wrong_i  // the memory counted another number of W beats
);
  localparam int unsigned PageBits = 12;
  localparam int unsigned SizeBits = $clog2(StrbWidth);
  localparam logic [1:0] BurstIncr = 2'b01;

  // Bytes from the start of the page to the end of the burst.
  function automatic int unsigned burst_end(input logic [PageBits-1:0] offset,
                                            input logic [7:0] len);
    logic [PageBits-1:0] first;
    first = offset & ~PageBits'(StrbWidth - 1);
    return 32'(first) + (32'(len) + 32'd1) * StrbWidth;
  endfunction

  aw_stable_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni) awvalid_i && !awready_i |=>
      awvalid_i && $stable(
      {awid_i, awaddr_i, awlen_i, awsize_i, awburst_i}
  ))
  else $error("axi: AW changed before it was ready");

  w_stable_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni) wvalid_i && !wready_i |=>
      wvalid_i && $stable(
      {wdata_i, wstrb_i, wlast_i}
  ))
  else $error("axi: W changed before it was ready");

  b_stable_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni) bvalid_i && !bready_i |=>
      bvalid_i && $stable(
      {bid_i, bresp_i}
  ))
  else $error("axi: B changed before it was ready");

  ar_stable_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni) arvalid_i && !arready_i |=>
      arvalid_i && $stable(
      {arid_i, araddr_i, arlen_i, arsize_i, arburst_i}
  ))
  else $error("axi: AR changed before it was ready");

  r_stable_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni) rvalid_i && !rready_i |=>
      rvalid_i && $stable(
      {rid_i, rdata_i, rresp_i, rlast_i}
  ))
  else $error("axi: R changed before it was ready");

  aw_page_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni) awvalid_i |-> burst_end(
      awaddr_i[PageBits-1:0], awlen_i
  ) <= (1 << PageBits))
  else $error("axi: a write burst crosses 4 KiB");

  ar_page_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni) arvalid_i |-> burst_end(
      araddr_i[PageBits-1:0], arlen_i
  ) <= (1 << PageBits))
  else $error("axi: a read burst crosses 4 KiB");

  aw_kind_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      awvalid_i |-> awsize_i == 3'(SizeBits) && awburst_i == BurstIncr)
  else $error("axi: a write burst is not of full width or not INCR");

  ar_kind_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      arvalid_i |-> arsize_i == 3'(SizeBits) && arburst_i == BurstIncr)
  else $error("axi: a read burst is not of full width or not INCR");

  w_last_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !last_wrong_i)
  else $error("axi: WLAST at the wrong beat");
endmodule
