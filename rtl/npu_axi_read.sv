// Purpose: the read channels of the AXI4 master, shared by fetch (id 0, wins) and the load DMA
// (id 1). Responses are routed by id; both takers accept them always.
// Latency: none, both channels pass through.
// Backpressure: an address that was presented and not accepted keeps the channel.

module npu_axi_read (
  input logic clk_i,
  input logic rst_ni,

  input  logic                        fetch_ar_valid_i,
  output logic                        fetch_ar_ready_o,
  input  logic [npu_pkg::DRAM_AW-1:0] fetch_ar_addr_i,
  input  logic [                 7:0] fetch_ar_len_i,
  output logic                        fetch_r_valid_o,

  input  logic                        load_ar_valid_i,
  output logic                        load_ar_ready_o,
  input  logic [npu_pkg::DRAM_AW-1:0] load_ar_addr_i,
  input  logic [                 7:0] load_ar_len_i,
  output logic                        load_r_valid_o,

  output logic [                 1:0] m_axi_arid_o,
  output logic [npu_pkg::DRAM_AW-1:0] m_axi_araddr_o,
  output logic [                 7:0] m_axi_arlen_o,
  output logic [                 2:0] m_axi_arsize_o,
  output logic [                 1:0] m_axi_arburst_o,
  output logic                        m_axi_arvalid_o,
  input  logic                        m_axi_arready_i,
  input  logic [                 1:0] m_axi_rid_i,
  input  logic                        m_axi_rvalid_i,
  output logic                        m_axi_rready_o
);

  localparam logic [1:0] FetchId = 2'd0;
  localparam logic [1:0] LoadId = 2'd1;
  localparam logic [1:0] BurstIncr = 2'b01;

  logic load_held_q;  // the load DMA's address waits for ready
  logic use_load;

  assign use_load         = load_held_q || (load_ar_valid_i && !fetch_ar_valid_i);
  assign m_axi_arvalid_o  = use_load ? load_ar_valid_i : fetch_ar_valid_i;
  assign m_axi_arid_o     = use_load ? LoadId : FetchId;
  assign m_axi_araddr_o   = use_load ? load_ar_addr_i : fetch_ar_addr_i;
  assign m_axi_arlen_o    = use_load ? load_ar_len_i : fetch_ar_len_i;
  assign m_axi_arsize_o   = 3'($clog2(npu_pkg::BUS_BYTES));
  assign m_axi_arburst_o  = BurstIncr;

  assign load_ar_ready_o  = use_load && m_axi_arready_i;
  assign fetch_ar_ready_o = !use_load && m_axi_arready_i;

  assign m_axi_rready_o   = 1'b1;
  assign fetch_r_valid_o  = m_axi_rvalid_i && m_axi_rid_i == FetchId;
  assign load_r_valid_o   = m_axi_rvalid_i && m_axi_rid_i == LoadId;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) load_held_q <= 1'b0;
    else load_held_q <= use_load && load_ar_valid_i && !m_axi_arready_i;
  end

`ifndef SYNTHESIS
  address_stable :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   m_axi_arvalid_o && !m_axi_arready_i |=> m_axi_arvalid_o &&
                   $stable(
      m_axi_araddr_o
  ) && $stable(
      m_axi_arid_o
  ) && $stable(
      m_axi_arlen_o
  ))
  else $error("npu_axi_read: address changed while valid and not ready");
`endif

endmodule
