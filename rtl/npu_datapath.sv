// Purpose: the four engines and the memories between them. Nothing here is arbitrated: engines that
// meet at a memory port are reported in `conflict_o`.
// Latency and backpressure: see the modules.
//
// The vector engine is two units, npu_vector and npu_rows, of which one works at a time: the opcode
// chooses, and both are idle before either accepts.
//
// For observers: act_wr_* (0 load, 1 vector), wgt_wr_*, par_wr_*, tab_wr_*, acc_m_wr_* (with
// u_matrix.acc_wr_final) are the writes of on-chip rows; stores are seen on W.

module npu_datapath (
  input logic clk_i,
  input logic rst_ni,

  // One command port for each engine.
  input  logic              [3:0] cmd_valid_i,
  output logic              [3:0] cmd_ready_o,
  input  npu_pkg::command_t [3:0] cmd_i,
  output logic              [3:0] done_o,
  output logic                    load_error_o,   // with done_o: a bus error was met
  output logic                    store_error_o,
  output logic              [3:0] conflict_o,     // engines that met at a memory port

  input logic [npu_pkg::BASE_REGISTERS-1:0][npu_pkg::DRAM_AW-1:0] base_i,

  output logic                                 ar_valid_o,
  input  logic                                 ar_ready_i,
  output logic          [npu_pkg::DRAM_AW-1:0] ar_addr_o,
  output logic          [                 7:0] ar_len_o,
  input  logic                                 r_valid_i,
  input  npu_pkg::row_t                        r_data_i,
  input  logic          [                 1:0] r_resp_i,
  input  logic                                 r_last_i,

  output logic                                 aw_valid_o,
  input  logic                                 aw_ready_i,
  output logic          [npu_pkg::DRAM_AW-1:0] aw_addr_o,
  output logic          [                 7:0] aw_len_o,
  output logic                                 w_valid_o,
  input  logic                                 w_ready_i,
  output npu_pkg::row_t                        w_data_o,
  output logic                                 w_last_o,
  input  logic                                 b_valid_i,
  output logic                                 b_ready_o,
  input  logic          [                 1:0] b_resp_i
);

  localparam int unsigned Load = 32'(npu_pkg::ENGINE_LOAD);
  localparam int unsigned Matrix = 32'(npu_pkg::ENGINE_MATRIX);
  localparam int unsigned Vector = 32'(npu_pkg::ENGINE_VECTOR);
  localparam int unsigned Store = 32'(npu_pkg::ENGINE_STORE);

  // ------------------------------------------------------------------------------------ memories
  logic [3:0] act_conflict;
  logic acc_conflict;
  logic [2:0] act_rd_en;
  logic [2:0][15:0] act_rd_row;
  npu_pkg::row_t [2:0] act_rd_data;
  logic [1:0] act_wr_en;
  logic [1:0][15:0] act_wr_row;
  npu_pkg::row_t [1:0] act_wr_data;
  logic wgt_wr_en, wgt_rd_en, par_wr_en, par_rd_en, tab_wr_en, tab_rd_en, tab_rd_table;
  logic [15:0] wgt_wr_row, wgt_rd_row, par_wr_beat, par_rd_row, tab_wr_beat;
  npu_pkg::row_t wgt_wr_data, wgt_rd_data, par_wr_data, tab_wr_data, tab_rd_word;
  npu_pkg::word_row_t par_rd_data, tab_rd_data;
  logic acc_m_rd_en, acc_m_rd_bank, acc_m_wr_en, acc_m_wr_bank, acc_v_rd_en, acc_v_rd_bank;
  logic [15:0] acc_m_rd_row, acc_m_wr_row, acc_v_rd_row;
  npu_pkg::word_row_t acc_m_rd_data, acc_m_wr_data, acc_v_rd_data;

  npu_act_mem u_act_mem (
    .clk_i,
    .rst_ni,
    .rd_en_i   (act_rd_en),
    .rd_row_i  (act_rd_row),
    .rd_data_o (act_rd_data),
    .wr_en_i   (act_wr_en),
    .wr_row_i  (act_wr_row),
    .wr_data_i (act_wr_data),
    .conflict_o(act_conflict)
  );

  npu_wgt_mem u_wgt_mem (
    .clk_i,
    .wr_en_i  (wgt_wr_en),
    .wr_row_i (wgt_wr_row),
    .wr_data_i(wgt_wr_data),
    .rd_en_i  (wgt_rd_en),
    .rd_row_i (wgt_rd_row),
    .rd_data_o(wgt_rd_data)
  );

  npu_par_mem u_par_mem (
    .clk_i,
    .wr_en_i  (par_wr_en),
    .wr_beat_i(par_wr_beat),
    .wr_data_i(par_wr_data),
    .rd_en_i  (par_rd_en),
    .rd_row_i (par_rd_row),
    .rd_data_o(par_rd_data)
  );

  npu_tab_mem u_tab_mem (
    .clk_i,
    .wr_en_i   (tab_wr_en),
    .wr_beat_i (tab_wr_beat),
    .wr_data_i (tab_wr_data),
    .rd_en_i   (tab_rd_en),
    .rd_table_i(tab_rd_table),
    .rd_word_i (tab_rd_word),
    .rd_data_o (tab_rd_data)
  );

  npu_acc_mem u_acc_mem (
    .clk_i,
    .rst_ni,
    .m_rd_en_i  (acc_m_rd_en),
    .m_rd_bank_i(acc_m_rd_bank),
    .m_rd_row_i (acc_m_rd_row),
    .m_rd_data_o(acc_m_rd_data),
    .m_wr_en_i  (acc_m_wr_en),
    .m_wr_bank_i(acc_m_wr_bank),
    .m_wr_row_i (acc_m_wr_row),
    .m_wr_data_i(acc_m_wr_data),
    .v_rd_en_i  (acc_v_rd_en),
    .v_rd_bank_i(acc_v_rd_bank),
    .v_rd_row_i (acc_v_rd_row),
    .v_rd_data_o(acc_v_rd_data),
    .conflict_o (acc_conflict)
  );

  // ------------------------------------------------------------------------------------- engines
  logic unused_rready;

  npu_load u_load (
    .clk_i,
    .rst_ni,
    .cmd_valid_i  (cmd_valid_i[Load]),
    .cmd_ready_o  (cmd_ready_o[Load]),
    .cmd_i        (cmd_i[Load]),
    .done_o       (done_o[Load]),
    .error_o      (load_error_o),
    .base_i       (base_i),
    .arvalid_o    (ar_valid_o),
    .arready_i    (ar_ready_i),
    .araddr_o     (ar_addr_o),
    .arlen_o      (ar_len_o),
    .rvalid_i     (r_valid_i),
    .rready_o     (unused_rready),
    .rdata_i      (r_data_i),
    .rresp_i      (r_resp_i),
    .rlast_i      (r_last_i),
    .act_wr_en_o  (act_wr_en[0]),
    .act_wr_row_o (act_wr_row[0]),
    .act_wr_data_o(act_wr_data[0]),
    .wgt_wr_en_o  (wgt_wr_en),
    .wgt_wr_row_o (wgt_wr_row),
    .wgt_wr_data_o(wgt_wr_data),
    .par_wr_en_o  (par_wr_en),
    .par_wr_beat_o(par_wr_beat),
    .par_wr_data_o(par_wr_data),
    .tab_wr_en_o  (tab_wr_en),
    .tab_wr_beat_o(tab_wr_beat),
    .tab_wr_data_o(tab_wr_data)
  );

  npu_matrix u_matrix (
    .clk_i,
    .rst_ni,
    .cmd_valid_i  (cmd_valid_i[Matrix]),
    .cmd_ready_o  (cmd_ready_o[Matrix]),
    .cmd_i        (cmd_i[Matrix]),
    .done_o       (done_o[Matrix]),
    .act_rd_en_o  (act_rd_en[0]),
    .act_rd_row_o (act_rd_row[0]),
    .act_rd_data_i(act_rd_data[0]),
    .wgt_rd_en_o  (wgt_rd_en),
    .wgt_rd_row_o (wgt_rd_row),
    .wgt_rd_data_i(wgt_rd_data),
    .acc_rd_en_o  (acc_m_rd_en),
    .acc_rd_bank_o(acc_m_rd_bank),
    .acc_rd_row_o (acc_m_rd_row),
    .acc_rd_data_i(acc_m_rd_data),
    .acc_wr_en_o  (acc_m_wr_en),
    .acc_wr_bank_o(acc_m_wr_bank),
    .acc_wr_row_o (acc_m_wr_row),
    .acc_wr_data_o(acc_m_wr_data)
  );

  // 0 npu_vector, 1 npu_rows.
  logic to_rows, both_idle;
  logic [1:0] to_unit, unit_ready, unit_done, unit_rd_en, unit_par_en, unit_wr_en;
  logic [1:0][15:0] unit_rd_row, unit_par_row, unit_wr_row;
  npu_pkg::row_t [1:0] unit_wr_data;
  logic [7:0] opcode;

  assign opcode = cmd_i[Vector].instr[7:0];
  assign to_rows = opcode == npu_pkg::OP_LOOKUP || opcode == npu_pkg::OP_SOFTMAX ||
      opcode == npu_pkg::OP_LAYERNORM;
  assign both_idle = &unit_ready;
  assign to_unit[0] = cmd_valid_i[Vector] && both_idle && !to_rows;
  assign to_unit[1] = cmd_valid_i[Vector] && both_idle && to_rows;
  assign cmd_ready_o[Vector] = both_idle;
  assign done_o[Vector] = |unit_done;
  assign act_rd_en[1] = |unit_rd_en;
  assign act_rd_row[1] = unit_rd_en[1] ? unit_rd_row[1] : unit_rd_row[0];
  assign par_rd_en = |unit_par_en;
  assign par_rd_row = unit_par_en[1] ? unit_par_row[1] : unit_par_row[0];
  assign act_wr_en[1] = |unit_wr_en;
  assign act_wr_row[1] = unit_wr_en[1] ? unit_wr_row[1] : unit_wr_row[0];
  assign act_wr_data[1] = unit_wr_en[1] ? unit_wr_data[1] : unit_wr_data[0];

  npu_vector u_vector (
    .clk_i,
    .rst_ni,
    .cmd_valid_i  (to_unit[0]),
    .cmd_ready_o  (unit_ready[0]),
    .cmd_i        (cmd_i[Vector]),
    .done_o       (unit_done[0]),
    .acc_rd_en_o  (acc_v_rd_en),
    .acc_rd_bank_o(acc_v_rd_bank),
    .acc_rd_row_o (acc_v_rd_row),
    .acc_rd_data_i(acc_v_rd_data),
    .act_rd_en_o  (unit_rd_en[0]),
    .act_rd_row_o (unit_rd_row[0]),
    .act_rd_data_i(act_rd_data[1]),
    .par_rd_en_o  (unit_par_en[0]),
    .par_rd_row_o (unit_par_row[0]),
    .par_rd_data_i(par_rd_data),
    .act_wr_en_o  (unit_wr_en[0]),
    .act_wr_row_o (unit_wr_row[0]),
    .act_wr_data_o(unit_wr_data[0])
  );

  npu_rows u_rows (
    .clk_i,
    .rst_ni,
    .cmd_valid_i   (to_unit[1]),
    .cmd_ready_o   (unit_ready[1]),
    .cmd_i         (cmd_i[Vector]),
    .done_o        (unit_done[1]),
    .act_rd_en_o   (unit_rd_en[1]),
    .act_rd_row_o  (unit_rd_row[1]),
    .act_rd_data_i (act_rd_data[1]),
    .par_rd_en_o   (unit_par_en[1]),
    .par_rd_row_o  (unit_par_row[1]),
    .par_rd_data_i (par_rd_data),
    .tab_rd_en_o   (tab_rd_en),
    .tab_rd_table_o(tab_rd_table),
    .tab_rd_word_o (tab_rd_word),
    .tab_rd_data_i (tab_rd_data),
    .act_wr_en_o   (unit_wr_en[1]),
    .act_wr_row_o  (unit_wr_row[1]),
    .act_wr_data_o (unit_wr_data[1])
  );

  npu_store u_store (
    .clk_i,
    .rst_ni,
    .cmd_valid_i  (cmd_valid_i[Store]),
    .cmd_ready_o  (cmd_ready_o[Store]),
    .cmd_i        (cmd_i[Store]),
    .done_o       (done_o[Store]),
    .error_o      (store_error_o),
    .base_i       (base_i),
    .awvalid_o    (aw_valid_o),
    .awready_i    (aw_ready_i),
    .awaddr_o     (aw_addr_o),
    .awlen_o      (aw_len_o),
    .wvalid_o     (w_valid_o),
    .wready_i     (w_ready_i),
    .wdata_o      (w_data_o),
    .wlast_o      (w_last_o),
    .bvalid_i     (b_valid_i),
    .bready_o     (b_ready_o),
    .bresp_i      (b_resp_i),
    .act_rd_en_o  (act_rd_en[2]),
    .act_rd_row_o (act_rd_row[2]),
    .act_rd_data_i(act_rd_data[2])
  );

  always_comb begin
    conflict_o = act_conflict;
    if (acc_conflict) begin
      conflict_o[Matrix] = 1'b1;
      conflict_o[Vector] = 1'b1;
    end
  end

endmodule
