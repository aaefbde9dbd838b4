// Purpose: the matrix engine with its memories, for its unit test. The test writes activations and
// weights through the ports of the load DMA and reads accumulators through the vector engine's.

module matrix_bench (
  input logic clk_i,
  input logic rst_ni,

  input  logic              cmd_valid_i,
  output logic              cmd_ready_o,
  input  npu_pkg::command_t cmd_i,
  output logic              done_o,

  input logic                  act_wr_en_i,
  input logic                  wgt_wr_en_i,
  input logic           [15:0] wr_row_i,
  input npu_pkg::row_t         wr_data_i,

  input  logic                      acc_rd_en_i,
  input  logic                      acc_rd_bank_i,
  input  logic               [15:0] acc_rd_row_i,
  output npu_pkg::word_row_t        acc_rd_data_o,

  output logic        final_o,      // a row got its final value
  output logic        final_bank_o,
  output logic [15:0] final_row_o
);

  logic act_rd_en, wgt_rd_en, acc_rd_en, acc_rd_bank, acc_wr_en, acc_wr_bank;
  logic [15:0] act_rd_row, wgt_rd_row, acc_rd_row, acc_wr_row;
  npu_pkg::row_t wgt_rd_data;
  npu_pkg::row_t [2:0] act_rd_data;
  npu_pkg::word_row_t acc_rd_data, acc_wr_data;
  logic unused_acc_conflict;
  logic [3:0] unused_act_conflict;

  npu_matrix u_matrix (
    .clk_i,
    .rst_ni,
    .cmd_valid_i,
    .cmd_ready_o,
    .cmd_i,
    .done_o,
    .act_rd_en_o  (act_rd_en),
    .act_rd_row_o (act_rd_row),
    .act_rd_data_i(act_rd_data[0]),
    .wgt_rd_en_o  (wgt_rd_en),
    .wgt_rd_row_o (wgt_rd_row),
    .wgt_rd_data_i(wgt_rd_data),
    .acc_rd_en_o  (acc_rd_en),
    .acc_rd_bank_o(acc_rd_bank),
    .acc_rd_row_o (acc_rd_row),
    .acc_rd_data_i(acc_rd_data),
    .acc_wr_en_o  (acc_wr_en),
    .acc_wr_bank_o(acc_wr_bank),
    .acc_wr_row_o (acc_wr_row),
    .acc_wr_data_o(acc_wr_data)
  );

  npu_act_mem u_act (
    .clk_i,
    .rst_ni,
    .rd_en_i   ({2'b00, act_rd_en}),
    .rd_row_i  ({32'd0, act_rd_row}),
    .rd_data_o (act_rd_data),
    .wr_en_i   ({1'b0, act_wr_en_i}),
    .wr_row_i  ({16'd0, wr_row_i}),
    .wr_data_i ({wr_data_i, wr_data_i}),
    .conflict_o(unused_act_conflict)
  );

  npu_wgt_mem u_wgt (
    .clk_i,
    .wr_en_i  (wgt_wr_en_i),
    .wr_row_i,
    .wr_data_i,
    .rd_en_i  (wgt_rd_en),
    .rd_row_i (wgt_rd_row),
    .rd_data_o(wgt_rd_data)
  );

  npu_acc_mem u_acc (
    .clk_i,
    .rst_ni,
    .m_rd_en_i  (acc_rd_en),
    .m_rd_bank_i(acc_rd_bank),
    .m_rd_row_i (acc_rd_row),
    .m_rd_data_o(acc_rd_data),
    .m_wr_en_i  (acc_wr_en),
    .m_wr_bank_i(acc_wr_bank),
    .m_wr_row_i (acc_wr_row),
    .m_wr_data_i(acc_wr_data),
    .v_rd_en_i  (acc_rd_en_i),
    .v_rd_bank_i(acc_rd_bank_i),
    .v_rd_row_i (acc_rd_row_i),
    .v_rd_data_o(acc_rd_data_o),
    .conflict_o (unused_acc_conflict)
  );

  assign final_o      = acc_wr_en && u_matrix.acc_wr_final;
  assign final_bank_o = acc_wr_bank;
  assign final_row_o  = acc_wr_row;

endmodule
