// Purpose: matrix engine for conv and dwconv. Streams activation rows through the LANES×LANES array
// or the depthwise datapath, weight tile after weight tile without draining, and accumulates.
// Latency: a command accepted in cycle 0 ends in the cycle that conv_cycles or dwconv_cycles of the
// instruction table gives, which `done_o` marks. Pipeline of a column, from its address in cycle t:
//   t+1 data, minus zero point   t+2 products and sums   t+3 old accumulator read
//   t+4 addition                 t+5 write               t+9 end of the instruction, if the last
// The four cycles that remain are for retiming and keep the duration stable.
// Backpressure: a command is accepted only when idle; the datapath never stalls.

module npu_matrix (
  input logic clk_i,
  input logic rst_ni,

  input  logic              cmd_valid_i,
  output logic              cmd_ready_o,
  input  npu_pkg::command_t cmd_i,
  output logic              done_o,

  output logic                 act_rd_en_o,
  output logic          [15:0] act_rd_row_o,
  input  npu_pkg::row_t        act_rd_data_i,

  output logic                 wgt_rd_en_o,
  output logic          [15:0] wgt_rd_row_o,
  input  npu_pkg::row_t        wgt_rd_data_i,

  output logic                      acc_rd_en_o,
  output logic                      acc_rd_bank_o,
  output logic               [15:0] acc_rd_row_o,
  input  npu_pkg::word_row_t        acc_rd_data_i,
  output logic                      acc_wr_en_o,
  output logic                      acc_wr_bank_o,
  output logic               [15:0] acc_wr_row_o,
  output npu_pkg::word_row_t        acc_wr_data_o
);

  localparam int unsigned Lanes = npu_pkg::LANES;

  // ------------------------------------------------------------------------------------- commands
  logic accept, busy_q, start_q;
  npu_matrix_pkg::job_t job_q;
  logic issue, issue_last, next_tile;
  logic [npu_pkg::MATRIX_LATENCY-1:0] last_q;  // the last column on its way to the end cycle

  assign cmd_ready_o = !busy_q;
  assign accept      = cmd_valid_i && cmd_ready_o;
  assign done_o      = last_q[npu_pkg::MATRIX_LATENCY-1];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q  <= 1'b0;
      start_q <= 1'b0;
      job_q   <= '0;
      last_q  <= '0;
    end else begin
      start_q <= accept;
      last_q  <= {last_q[npu_pkg::MATRIX_LATENCY-2:0], issue_last};
      if (accept) begin
        busy_q <= 1'b1;
        job_q <= cmd_i.instr[7:0] == npu_pkg::OP_DWCONV ? npu_matrix_pkg::decode_dwconv(
            npu_pkg::dwconv_t'(cmd_i.instr)
        ) : npu_matrix_pkg::decode_conv(
            npu_pkg::conv_t'(cmd_i.instr)
        );
      end else if (done_o) begin
        busy_q <= 1'b0;
      end
    end
  end

  // -------------------------------------------------------------------------- addresses, weights
  npu_matrix_pkg::column_t column;
  logic weight_valid;
  logic [$clog2(Lanes)-1:0] weight_index;
  npu_matrix_pkg::diff_row_t weight_row;

  npu_matrix_walk u_walk (
    .clk_i,
    .rst_ni,
    .start_i    (start_q),
    .job_i      (job_q),
    .valid_o    (issue),
    .last_o     (issue_last),
    .next_tile_o(next_tile),
    .column_o   (column),
    .row_o      (act_rd_row_o)
  );
  assign act_rd_en_o = issue && column.in_range;

  npu_matrix_weights u_weights (
    .clk_i,
    .rst_ni,
    .start_i    (start_q),
    .tile_i     (start_q || next_tile),
    .job_i      (job_q),
    .rd_en_o    (wgt_rd_en_o),
    .rd_row_o   (wgt_rd_row_o),
    .rd_data_i  (wgt_rd_data_i),
    .row_valid_o(weight_valid),
    .row_index_o(weight_index),
    .row_o      (weight_row)
  );

  // ------------------------------------------------------- t+1: activation data minus zero point
  logic data_valid_q, diff_valid_q, sum_valid_q;
  npu_matrix_pkg::column_t data_column_q, diff_column_q, sum_column_q;
  npu_matrix_pkg::diff_row_t diff_d, diff_q;

  always_comb begin
    diff_d = diff_q;
    if (data_valid_q) begin
      diff_d = '0;
      for (int i = 0; i < Lanes; i++) begin
        if (data_column_q.in_range && !(data_column_q.in_last && 6'(i) >= job_q.in_tail)) begin
          diff_d[i] = 9'(signed'(act_rd_data_i[i])) - 9'(job_q.input_zero_point);
        end
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      data_valid_q  <= 1'b0;
      diff_valid_q  <= 1'b0;
      sum_valid_q   <= 1'b0;
      data_column_q <= '0;
      diff_column_q <= '0;
      sum_column_q  <= '0;
      diff_q        <= '0;
    end else begin
      data_valid_q  <= issue;
      diff_valid_q  <= data_valid_q;
      sum_valid_q   <= diff_valid_q;
      data_column_q <= column;
      diff_column_q <= data_column_q;
      sum_column_q  <= diff_column_q;
      diff_q        <= diff_d;
    end
  end

  // --------------------------------------------------------------------- t+2: products and sums
  logic swap;
  npu_pkg::word_row_t mac_sums, depthwise_sums;
  assign swap = data_valid_q && data_column_q.first;

  npu_matrix_mac u_mac (
    .clk_i,
    .rst_ni,
    .weight_valid_i     (weight_valid && !job_q.depthwise),
    .weight_transposed_i(job_q.transposed),
    .weight_index_i     (weight_index),
    .weight_row_i       (weight_row),
    .swap_i             (swap && !job_q.depthwise),
    .valid_i            (diff_valid_q && !job_q.depthwise),
    .row_i              (diff_q),
    .sums_o             (mac_sums)
  );

  npu_matrix_depthwise u_depthwise (
    .clk_i,
    .rst_ni,
    .weight_valid_i(weight_valid && job_q.depthwise),
    .weight_index_i(weight_index),
    .weight_row_i  (weight_row),
    .swap_i        (swap && job_q.depthwise),
    .wide_i        (job_q.wide),
    .valid_i       (diff_valid_q && job_q.depthwise),
    .row_i         (diff_q),
    .sums_o        (depthwise_sums)
  );

  // ------------------------------------------------------------------------- t+3 to t+5: update
  logic acc_wr_final;  // for the observer: the row has its final value

  npu_matrix_accumulate u_accumulate (
    .clk_i,
    .rst_ni,
    .valid_i   (sum_valid_q),
    .column_i  (sum_column_q),
    .sums_i    (job_q.depthwise ? depthwise_sums : mac_sums),
    .bank_i    (job_q.acc_bank),
    .out_tail_i(job_q.out_tail),
    .rd_en_o   (acc_rd_en_o),
    .rd_bank_o (acc_rd_bank_o),
    .rd_row_o  (acc_rd_row_o),
    .rd_data_i (acc_rd_data_i),
    .wr_en_o   (acc_wr_en_o),
    .wr_final_o(acc_wr_final),
    .wr_bank_o (acc_wr_bank_o),
    .wr_row_o  (acc_wr_row_o),
    .wr_data_o (acc_wr_data_o)
  );

  logic unused_bits;
  assign unused_bits = ^{cmd_i, acc_wr_final, job_q};

`ifndef SYNTHESIS
  // A waiting command stays as it is; a stop or a reset may withdraw it.
  cmd_stable_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      cmd_valid_i && !cmd_ready_o |=> !cmd_valid_i || $stable(
      cmd_i
  ))
  else $error("npu_matrix: command changed while it waited");
`endif

endmodule
