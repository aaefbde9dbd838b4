// Test bench: the NPU, the AXI memory and the observer. It has no ports: clock, reset and the AXI4-Lite
// port are variables that npu_main.cpp and cocotb set; everything that happens every cycle is in here.
// `run` asks npu_main.cpp to run the clock by itself until irq or run_limit cycles, then falls.
module npu_tb;
  logic clk_i = 1'b0;
  logic rst_ni = 1'b0;
  logic run = 1'b0;
  logic [63:0] run_limit = '0;
  logic observe = 1'b0;  // records and digests
  logic irq;

  logic [npu_pkg::REG_AW-1:0] s_axil_awaddr = '0;
  logic s_axil_awvalid = 1'b0;
  logic s_axil_awready;
  logic [31:0] s_axil_wdata = '0;
  logic s_axil_wvalid = 1'b0;
  logic s_axil_wready;
  logic [1:0] s_axil_bresp;
  logic s_axil_bvalid;
  logic s_axil_bready = 1'b0;
  logic [npu_pkg::REG_AW-1:0] s_axil_araddr = '0;
  logic s_axil_arvalid = 1'b0;
  logic s_axil_arready;
  logic [31:0] s_axil_rdata;
  logic [1:0] s_axil_rresp;
  logic s_axil_rvalid;
  logic s_axil_rready = 1'b0;

  localparam int unsigned IdWidth = 2;

  logic [IdWidth-1:0] awid, bid, arid, rid;
  logic [npu_pkg::DRAM_AW-1:0] awaddr, araddr;
  logic [7:0] awlen, arlen;
  logic [2:0] awsize, arsize;
  logic [1:0] awburst, arburst, bresp, rresp;
  logic [npu_pkg::BUS_BITS-1:0] wdata, rdata;
  logic [npu_pkg::BUS_BYTES-1:0] wstrb;
  logic awvalid, awready, wvalid, wready, wlast, bvalid, bready;
  logic arvalid, arready, rvalid, rready, rlast;

  npu_top u_npu (
    .clk_i,
    .rst_ni,
    .irq_o           (irq),
    .s_axil_awaddr_i (s_axil_awaddr),
    .s_axil_awvalid_i(s_axil_awvalid),
    .s_axil_awready_o(s_axil_awready),
    .s_axil_wdata_i  (s_axil_wdata),
    .s_axil_wstrb_i  ('1),
    .s_axil_wvalid_i (s_axil_wvalid),
    .s_axil_wready_o (s_axil_wready),
    .s_axil_bresp_o  (s_axil_bresp),
    .s_axil_bvalid_o (s_axil_bvalid),
    .s_axil_bready_i (s_axil_bready),
    .s_axil_araddr_i (s_axil_araddr),
    .s_axil_arvalid_i(s_axil_arvalid),
    .s_axil_arready_o(s_axil_arready),
    .s_axil_rdata_o  (s_axil_rdata),
    .s_axil_rresp_o  (s_axil_rresp),
    .s_axil_rvalid_o (s_axil_rvalid),
    .s_axil_rready_i (s_axil_rready),
    .m_axi_awid_o    (awid),
    .m_axi_awaddr_o  (awaddr),
    .m_axi_awlen_o   (awlen),
    .m_axi_awsize_o  (awsize),
    .m_axi_awburst_o (awburst),
    .m_axi_awvalid_o (awvalid),
    .m_axi_awready_i (awready),
    .m_axi_wdata_o   (wdata),
    .m_axi_wstrb_o   (wstrb),
    .m_axi_wlast_o   (wlast),
    .m_axi_wvalid_o  (wvalid),
    .m_axi_wready_i  (wready),
    .m_axi_bid_i     (bid),
    .m_axi_bresp_i   (bresp),
    .m_axi_bvalid_i  (bvalid),
    .m_axi_bready_o  (bready),
    .m_axi_arid_o    (arid),
    .m_axi_araddr_o  (araddr),
    .m_axi_arlen_o   (arlen),
    .m_axi_arsize_o  (arsize),
    .m_axi_arburst_o (arburst),
    .m_axi_arvalid_o (arvalid),
    .m_axi_arready_i (arready),
    .m_axi_rid_i     (rid),
    .m_axi_rdata_i   (rdata),
    .m_axi_rresp_i   (rresp),
    .m_axi_rlast_i   (rlast),
    .m_axi_rvalid_i  (rvalid),
    .m_axi_rready_o  (rready)
  );

  axi_memory #(
    .DataWidth(npu_pkg::BUS_BITS),
    .AddrWidth(npu_pkg::DRAM_AW),
    .IdWidth  (IdWidth)
  ) u_memory (
    .clk_i,
    .rst_ni,
    .awid_i   (awid),
    .awaddr_i (awaddr),
    .awlen_i  (awlen),
    .awsize_i (awsize),
    .awburst_i(awburst),
    .awvalid_i(awvalid),
    .awready_o(awready),
    .wdata_i  (wdata),
    .wstrb_i  (wstrb),
    .wlast_i  (wlast),
    .wvalid_i (wvalid),
    .wready_o (wready),
    .bid_o    (bid),
    .bresp_o  (bresp),
    .bvalid_o (bvalid),
    .bready_i (bready),
    .arid_i   (arid),
    .araddr_i (araddr),
    .arlen_i  (arlen),
    .arsize_i (arsize),
    .arburst_i(arburst),
    .arvalid_i(arvalid),
    .arready_o(arready),
    .rid_o    (rid),
    .rdata_o  (rdata),
    .rresp_o  (rresp),
    .rlast_o  (rlast),
    .rvalid_o (rvalid),
    .rready_i (rready)
  );

  npu_observe u_observe (
    .clk_i,
    .rst_ni,
    .enable_i(observe)
  );

  // Read and set from outside only.
  logic unused;
  assign unused = ^{
    run,
    run_limit,
    irq,
    s_axil_awready,
    s_axil_wready,
    s_axil_bresp,
    s_axil_bvalid,
    s_axil_arready,
    s_axil_rdata,
    s_axil_rresp,
    s_axil_rvalid
  };
endmodule
