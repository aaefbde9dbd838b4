// Purpose: two accumulator banks of LANES 32-bit words a row. The matrix engine reads and writes one
// bank while the vector engine reads the other; two readers of one bank in one cycle are reported.
// Latency: row in cycle t, data in cycle t+1.
// Backpressure: none. On a conflict the matrix engine has the port; `conflict_o` is high in that
// same cycle.

module npu_acc_mem (
  input logic clk_i,
  input logic rst_ni,

  input  logic                      m_rd_en_i,
  input  logic                      m_rd_bank_i,
  input  logic               [15:0] m_rd_row_i,
  output npu_pkg::word_row_t        m_rd_data_o,
  input  logic                      m_wr_en_i,
  input  logic                      m_wr_bank_i,
  input  logic               [15:0] m_wr_row_i,
  input  npu_pkg::word_row_t        m_wr_data_i,

  input  logic                      v_rd_en_i,
  input  logic                      v_rd_bank_i,
  input  logic               [15:0] v_rd_row_i,
  output npu_pkg::word_row_t        v_rd_data_o,

  output logic conflict_o
);

  localparam int unsigned RowWidth = npu_pkg::ACC_AW;

  npu_pkg::word_row_t [1:0] bank_data;
  logic m_rd_bank_q, v_rd_bank_q;

  for (genvar b = 0; b < 2; b++) begin : gen_bank
    logic m_rd_en, v_rd_en;
    assign m_rd_en = m_rd_en_i && m_rd_bank_i == 1'(b);
    assign v_rd_en = v_rd_en_i && v_rd_bank_i == 1'(b);

    npu_ram #(
      .Width(32 * npu_pkg::LANES),
      .Depth(npu_pkg::ACC_ROWS)
    ) u_ram (
      .clk_i,
      .rd_en_i  (m_rd_en || v_rd_en),
      .rd_row_i (m_rd_en ? m_rd_row_i[RowWidth-1:0] : v_rd_row_i[RowWidth-1:0]),
      .rd_data_o(bank_data[b]),
      .wr_en_i  (m_wr_en_i && m_wr_bank_i == 1'(b)),
      .wr_row_i (m_wr_row_i[RowWidth-1:0]),
      .wr_data_i(m_wr_data_i)
    );
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      m_rd_bank_q <= 1'b0;
      v_rd_bank_q <= 1'b0;
    end else begin
      if (m_rd_en_i) m_rd_bank_q <= m_rd_bank_i;
      if (v_rd_en_i) v_rd_bank_q <= v_rd_bank_i;
    end
  end

  assign m_rd_data_o = bank_data[m_rd_bank_q];
  assign v_rd_data_o = bank_data[v_rd_bank_q];
  assign conflict_o  = m_rd_en_i && v_rd_en_i && m_rd_bank_i == v_rd_bank_i;

  if (RowWidth < 16) begin : gen_unused
    logic unused_row_bits;
    assign unused_row_bits = ^{
      m_rd_row_i[15:RowWidth], m_wr_row_i[15:RowWidth], v_rd_row_i[15:RowWidth]
    };
  end

endmodule
