// Stand-in for the NPU in tests of the co-simulation itself: the same ports and a part of the
// registers, and one behaviour: start copies SIZE[3] bytes from BASE[2] to BASE[3], burst by burst, one at
// a time, then raises the interrupt. A bus error ends the run with its code.
// PROGRAM_OPCODES selects misbehaviour: 1 writes one beat beyond the output, 2 never ends, 3 breaks
// the rule of stable AR.
module npu_top (
  input  logic                          clk_i,
  input  logic                          rst_ni,
  output logic                          irq_o,
  input  logic [   npu_pkg::REG_AW-1:0] s_axil_awaddr_i,
  input  logic                          s_axil_awvalid_i,
  output logic                          s_axil_awready_o,
  input  logic [                  31:0] s_axil_wdata_i,
  input  logic [                   3:0] s_axil_wstrb_i,
  input  logic                          s_axil_wvalid_i,
  output logic                          s_axil_wready_o,
  output logic [                   1:0] s_axil_bresp_o,
  output logic                          s_axil_bvalid_o,
  input  logic                          s_axil_bready_i,
  input  logic [   npu_pkg::REG_AW-1:0] s_axil_araddr_i,
  input  logic                          s_axil_arvalid_i,
  output logic                          s_axil_arready_o,
  output logic [                  31:0] s_axil_rdata_o,
  output logic [                   1:0] s_axil_rresp_o,
  output logic                          s_axil_rvalid_o,
  input  logic                          s_axil_rready_i,
  output logic [                   1:0] m_axi_awid_o,
  output logic [  npu_pkg::DRAM_AW-1:0] m_axi_awaddr_o,
  output logic [                   7:0] m_axi_awlen_o,
  output logic [                   2:0] m_axi_awsize_o,
  output logic [                   1:0] m_axi_awburst_o,
  output logic                          m_axi_awvalid_o,
  input  logic                          m_axi_awready_i,
  output logic [ npu_pkg::BUS_BITS-1:0] m_axi_wdata_o,
  output logic [npu_pkg::BUS_BYTES-1:0] m_axi_wstrb_o,
  output logic                          m_axi_wlast_o,
  output logic                          m_axi_wvalid_o,
  input  logic                          m_axi_wready_i,
  input  logic [                   1:0] m_axi_bid_i,
  input  logic [                   1:0] m_axi_bresp_i,
  input  logic                          m_axi_bvalid_i,
  output logic                          m_axi_bready_o,
  output logic [                   1:0] m_axi_arid_o,
  output logic [  npu_pkg::DRAM_AW-1:0] m_axi_araddr_o,
  output logic [                   7:0] m_axi_arlen_o,
  output logic [                   2:0] m_axi_arsize_o,
  output logic [                   1:0] m_axi_arburst_o,
  output logic                          m_axi_arvalid_o,
  input  logic                          m_axi_arready_i,
  input  logic [                   1:0] m_axi_rid_i,
  input  logic [ npu_pkg::BUS_BITS-1:0] m_axi_rdata_i,
  input  logic [                   1:0] m_axi_rresp_i,
  input  logic                          m_axi_rlast_i,
  input  logic                          m_axi_rvalid_i,
  output logic                          m_axi_rready_o
);
  localparam int unsigned BeatShift = $clog2(npu_pkg::BUS_BYTES);

  typedef enum logic [2:0] {
    Idle,
    Read,
    Data,
    Write,
    Send,
    Respond,
    Hang
  } state_e;

  state_e state_q;
  logic [31:0] regs_q[1024];
  logic [63:0] cycles_q;
  logic [31:0] left_q;  // beats
  logic [npu_pkg::DRAM_AW-1:0] from_q, to_q;
  logic [npu_pkg::BUS_BITS-1:0] buffer_q[256];
  logic [8:0] beat_q, beats, page_beats;
  logic done_q, error_q, write, read_reg;

  // ------------------------------------------------------------------------------------ registers
  assign write = s_axil_awvalid_i && s_axil_wvalid_i && !s_axil_bvalid_o;
  assign read_reg = s_axil_arvalid_i && !s_axil_rvalid_o;
  assign s_axil_awready_o = write;
  assign s_axil_wready_o = write;
  assign s_axil_arready_o = read_reg;
  assign s_axil_bresp_o = 2'b00;
  assign s_axil_rresp_o = 2'b00;
  assign irq_o = done_q && regs_q[npu_pkg::REG_IRQ_ENABLE[11:2]][0];

  logic start_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      s_axil_bvalid_o <= 1'b0;
      s_axil_rvalid_o <= 1'b0;
      s_axil_rdata_o <= '0;
      start_q <= 1'b0;
    end else begin
      start_q <= write && s_axil_awaddr_i == npu_pkg::REG_CTRL && s_axil_wdata_i[0];
      if (write) begin
        s_axil_bvalid_o <= 1'b1;
        regs_q[s_axil_awaddr_i[11:2]] <= s_axil_wdata_i;
      end else if (s_axil_bready_i) begin
        s_axil_bvalid_o <= 1'b0;
      end
      if (read_reg) begin
        s_axil_rvalid_o <= 1'b1;
        unique case (s_axil_araddr_i)
          npu_pkg::REG_ID: s_axil_rdata_o <= npu_pkg::IDENTIFIER;
          npu_pkg::REG_LANES: s_axil_rdata_o <= npu_pkg::LANES;
          npu_pkg::REG_STATUS: s_axil_rdata_o <= {29'd0, error_q, done_q, state_q != Idle};
          npu_pkg::REG_ERROR_CODE: s_axil_rdata_o <= error_q ? 32'(npu_pkg::ERR_BUS_READ) : '0;
          npu_pkg::REG_CYCLES_LO: s_axil_rdata_o <= cycles_q[31:0];
          npu_pkg::REG_CYCLES_HI: s_axil_rdata_o <= cycles_q[63:32];
          default: s_axil_rdata_o <= regs_q[s_axil_araddr_i[11:2]];
        endcase
      end else if (s_axil_rready_i) begin
        s_axil_rvalid_o <= 1'b0;
      end
    end
  end

  // ----------------------------------------------------------------------------------- copy engine
  logic [11:0] to_page_end;
  assign to_page_end = 12'd0 - (from_q[11:0] > to_q[11:0] ? from_q[11:0] : to_q[11:0]);
  assign page_beats = (to_page_end >> BeatShift) == '0 || (to_page_end >> BeatShift) > 12'd16 ?
      9'd16 : 9'(to_page_end >> BeatShift);
  assign beats = 32'(page_beats) > left_q ? left_q[8:0] : page_beats;

  assign m_axi_arid_o = 2'd1;
  assign m_axi_awid_o = 2'd1;
  assign m_axi_araddr_o = from_q ^ (regs_q[npu_pkg::REG_PROGRAM_OPCODES[11:2]] == 32'd3 ?
      {cycles_q[32:0], 7'd0} & 40'hf80 : '0);
  assign m_axi_awaddr_o = to_q;
  assign m_axi_arlen_o = 8'(beats - 9'd1);
  assign m_axi_awlen_o = 8'(beats - 9'd1);
  assign m_axi_arsize_o = 3'(BeatShift);
  assign m_axi_awsize_o = 3'(BeatShift);
  assign m_axi_arburst_o = 2'b01;
  assign m_axi_awburst_o = 2'b01;
  assign m_axi_arvalid_o = state_q == Read;
  assign m_axi_awvalid_o = state_q == Write;
  assign m_axi_rready_o = state_q == Data;
  assign m_axi_wvalid_o = state_q == Send;
  assign m_axi_wdata_o = buffer_q[beat_q[7:0]];
  assign m_axi_wstrb_o = '1;
  assign m_axi_wlast_o = beat_q == beats - 9'd1;
  assign m_axi_bready_o = state_q == Respond;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      done_q <= 1'b0;
      error_q <= 1'b0;
      cycles_q <= '0;
      left_q <= '0;
      from_q <= '0;
      to_q <= '0;
      beat_q <= '0;
    end else begin
      if (state_q != Idle) cycles_q <= cycles_q + 64'd1;
      if (write && s_axil_awaddr_i == npu_pkg::REG_IRQ_STATUS && s_axil_wdata_i[0]) done_q <= 1'b0;
      unique case (state_q)
        Idle:
        if (start_q) begin
          state_q <= regs_q[npu_pkg::REG_PROGRAM_OPCODES[11:2]] == 32'd2 ? Hang : Read;
          done_q <= 1'b0;
          error_q <= 1'b0;
          cycles_q <= 64'd1;
          left_q <= (regs_q[(npu_pkg::REG_SIZE>>2)+3] >> BeatShift) +
              32'(regs_q[npu_pkg::REG_PROGRAM_OPCODES[11:2]] == 32'd1);
          from_q <= {regs_q[(npu_pkg::REG_BASE_HI>>2)+4][7:0], regs_q[(npu_pkg::REG_BASE_LO>>2)+4]};
          to_q <= {regs_q[(npu_pkg::REG_BASE_HI>>2)+6][7:0], regs_q[(npu_pkg::REG_BASE_LO>>2)+6]};
        end
        Read: begin
          beat_q <= '0;
          if (m_axi_arready_i) state_q <= Data;
        end
        Data:
        if (m_axi_rvalid_i) begin
          buffer_q[beat_q[7:0]] <= m_axi_rdata_i;
          beat_q <= m_axi_rlast_i ? '0 : beat_q + 9'd1;
          if (m_axi_rresp_i != 2'b00) error_q <= 1'b1;
          if (m_axi_rlast_i) state_q <= Write;
        end
        Write:   if (m_axi_awready_i) state_q <= Send;
        Send:
        if (m_axi_wready_i) begin
          beat_q <= beat_q + 9'd1;
          if (m_axi_wlast_o) state_q <= Respond;
        end
        Respond:
        if (m_axi_bvalid_i) begin
          from_q <= from_q + (40'(beats) << BeatShift);
          to_q <= to_q + (40'(beats) << BeatShift);
          left_q <= left_q - 32'(beats);
          state_q <= (left_q == 32'(beats) || error_q) ? Idle : Read;
          done_q <= left_q == 32'(beats) || error_q;
        end
        default: state_q <= Hang;
      endcase
    end
  end

  logic unused;
  assign unused = ^{s_axil_wstrb_i, m_axi_bid_i, m_axi_bresp_i, m_axi_rid_i};
endmodule
