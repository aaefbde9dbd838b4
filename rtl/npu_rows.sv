// Row engine: LOOKUP, SOFTMAX and LAYERNORM of the vector engine's queue. It works pixel by pixel,
// where SOFTMAX and LAYERNORM go over the channels more than once, LANES elements a cycle.
// Latency: the steps and waits of the walk plus ROWS_LATENCY cycles from the cycle in which a command
// is accepted to the one in which `done_o` is high.
// Backpressure: `cmd_ready_o` is high while idle; the memories are never waited for.
//
// Stage 0 walk, 1 read address, 2 elements. LOOKUP and SOFTMAX: 3 table address, 4 table word, 5 word or
// product, 6 written. LAYERNORM: 2 and 3 parameter addresses, 3 distance from the mean, 4 times the
// reciprocal, 5 normalized, 6 with gain and offset, 7 integer, 8 written.
module npu_rows (
  input logic clk_i,
  input logic rst_ni,

  input  logic              cmd_valid_i,
  output logic              cmd_ready_o,
  input  npu_pkg::command_t cmd_i,
  output logic              done_o,

  output logic                 act_rd_en_o,
  output logic          [15:0] act_rd_row_o,
  input  npu_pkg::row_t        act_rd_data_i,

  output logic                      par_rd_en_o,
  output logic               [15:0] par_rd_row_o,
  input  npu_pkg::word_row_t        par_rd_data_i,

  output logic               tab_rd_en_o,
  output logic               tab_rd_table_o,
  output npu_pkg::row_t      tab_rd_word_o,
  input  npu_pkg::word_row_t tab_rd_data_i,

  output logic                 act_wr_en_o,
  output logic          [15:0] act_wr_row_o,
  output npu_pkg::row_t        act_wr_data_o
);
  localparam int unsigned First = 2;  // stages that this module tracks
  localparam int unsigned LastSum = 5;
  localparam int unsigned LastTable = 6;
  localparam int unsigned Last = 8;

  logic accept, idle_q, start_q, done_q, is_norm, is_softmax;
  npu_rows_pkg::job_t job_d, job_q;
  logic walk_valid;
  npu_rows_pkg::step_t walk_step;
  logic final_write;
  logic [15:0] walk_par_row, par_row_q;
  logic [Last:First] valid_q, element, is_out;
  logic [LastSum:First] is_sum;
  npu_rows_pkg::step_t [Last:First] step_q;
  logic [npu_pkg::LANES-1:0] keep_element, keep_part, keep_table, keep_norm;
  logic sums_ready_q, parts_ready_q, parts_last_q;
  logic unused_bits;

  assign accept = cmd_valid_i && idle_q;
  assign cmd_ready_o = idle_q;
  assign done_o = done_q;
  assign unused_bits = ^cmd_i.index;

  npu_rows_decode u_decode (
    .en_i   (accept),
    .instr_i(cmd_i.instr),
    .job_o  (job_d)
  );

  npu_rows_walk u_walk (
    .clk_i,
    .rst_ni,
    .start_i  (start_q),
    .job_i    (job_q),
    .valid_o  (walk_valid),
    .step_o   (walk_step),
    .src_row_o(act_rd_row_o),
    .par_row_o(walk_par_row)
  );

  assign is_norm = job_q.kind == npu_rows_pkg::KindNorm;
  assign is_softmax = job_q.kind == npu_rows_pkg::KindSoftmax;
  assign act_rd_en_o = walk_valid && !walk_step.second;
  assign par_rd_en_o = valid_q[2] && is_norm && step_q[2].pass == npu_rows_pkg::PassOut;
  assign par_rd_row_o = par_row_q;

  // What each stage holds: an element of which pass, or only a second parameter row.
  always_comb begin
    for (int s = First; s <= Last; s++) begin
      element[s] = valid_q[s] && !step_q[s].second;
      is_out[s]  = element[s] && step_q[s].pass == npu_rows_pkg::PassOut;
    end
    for (int s = First; s <= LastSum; s++) begin
      is_sum[s] = element[s] && step_q[s].pass == npu_rows_pkg::PassSum;
    end
  end

  function automatic logic [npu_pkg::LANES-1:0] keep(logic last_block, logic [5:0] tail);
    for (int l = 0; l < npu_pkg::LANES; l++) keep[l] = !last_block || 6'(l) < tail;
  endfunction

  assign keep_element = keep(step_q[2].last_block, job_q.tail);
  assign keep_part = keep(step_q[4].last_block, job_q.tail);
  assign keep_table = keep(step_q[5].last_block, job_q.tail);
  assign keep_norm = keep(step_q[7].last_block, job_q.tail);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      idle_q <= 1'b1;
      start_q <= 1'b0;
      done_q <= 1'b0;
      valid_q <= '0;
      {sums_ready_q, parts_last_q, parts_ready_q} <= '0;
    end else begin
      idle_q <= (idle_q && !cmd_valid_i) || done_q;
      start_q <= accept;
      done_q <= act_wr_en_o && final_write;
      valid_q <= {valid_q[Last-1:First], walk_valid};
      sums_ready_q <= is_norm && is_sum[3] && step_q[3].last_block;
      parts_last_q <= is_softmax && is_sum[5] && step_q[5].last_block;
      parts_ready_q <= parts_last_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept) job_q <= job_d;
    if (!idle_q) begin
      step_q <= {step_q[Last-1:First], walk_step};
      par_row_q <= walk_par_row;
    end
  end

  // ------------------------------------------------------------------------ what a pixel has in common
  logic signed [7:0] largest;
  logic signed [19:0] sum;
  logic [26:0] squares;
  logic [31:0] parts_sum, inverse;
  logic [30:0] scale;
  logic [5:0] scale_places, inverse_places;
  npu_pkg::word_row_t parts;
  logic takes_max, takes_sum, adds_parts;

  assign takes_max  = element[2] && step_q[2].pass == npu_rows_pkg::PassMax;
  assign takes_sum  = is_norm && is_sum[2];
  assign adds_parts = is_softmax && is_sum[5];

  npu_rows_reduce u_reduce (
    .clk_i,
    .max_en_i     (takes_max),
    .sum_en_i     (takes_sum),
    .first_i      (step_q[2].first_block),
    .keep_i       (keep_element),
    .act_i        (act_rd_data_i),
    .max_o        (largest),
    .sum_o        (sum),
    .squares_o    (squares),
    .parts_en_i   (adds_parts),
    .parts_first_i(step_q[5].first_block),
    .parts_i      (parts),
    .parts_o      (parts_sum)
  );

  npu_rows_reciprocal u_reciprocal (
    .clk_i,
    .rst_ni,
    .start_i (parts_ready_q),
    .sum_i   (parts_sum),
    .scale_o (scale),
    .places_o(scale_places)
  );

  npu_rows_root u_root (
    .clk_i,
    .rst_ni,
    .start_i  (sums_ready_q),
    .count_i  (job_q.count),
    .sum_i    (sum),
    .squares_i(squares),
    .epsilon_i(job_q.epsilon),
    .inverse_o(inverse),
    .places_o (inverse_places)
  );

  // ------------------------------------------------------------------------------------------- lanes
  npu_pkg::row_t table_bytes, norm_bytes;
  logic [7:2] norm_valid;
  logic takes_index, takes_part, takes_value, takes_byte;

  assign norm_valid = is_norm ? is_out[7:2] : '0;
  assign takes_index = !is_norm && (is_sum[2] || is_out[2]);
  assign takes_part = !is_norm && is_sum[4];
  assign takes_value = !is_norm && is_out[4];
  assign takes_byte = !is_norm && is_out[5];
  assign tab_rd_en_o = !is_norm && (is_sum[3] || is_out[3]);
  assign tab_rd_table_o = job_q.lut;

  for (genvar l = 0; l < npu_pkg::LANES; l++) begin : gen_lane
    npu_rows_table u_table (
      .clk_i,
      .is_softmax_i(is_softmax),
      .index_en_i  (takes_index),
      .act_i       (act_rd_data_i[l]),
      .max_i       (largest),
      .index_o     (tab_rd_word_o[l]),
      .part_en_i   (takes_part),
      .value_en_i  (takes_value),
      .keep_i      (keep_part[l]),
      .word_i      (tab_rd_data_i[l]),
      .scale_i     (scale),
      .part_o      (parts[l]),
      .byte_en_i   (takes_byte),
      .byte_keep_i (keep_table[l]),
      .places_i    (scale_places),
      .byte_o      (table_bytes[l])
    );

    npu_rows_norm u_norm (
      .clk_i,
      .valid_i    (norm_valid),
      .job_i      (job_q),
      .act_i      (act_rd_data_i[l]),
      .sum_i      (sum),
      .inverse_i  (inverse),
      .places_i   (inverse_places),
      .gain_en_i  (norm_valid[3]),
      .offset_en_i(norm_valid[4]),
      .par_i      (par_rd_data_i[l]),
      .keep_i     (keep_norm[l]),
      .byte_o     (norm_bytes[l])
    );
  end

  assign act_wr_en_o   = is_norm ? is_out[Last] : is_out[LastTable];
  assign act_wr_row_o  = is_norm ? step_q[Last].dst_row : step_q[LastTable].dst_row;
  assign final_write   = is_norm ? step_q[Last].final_step : step_q[LastTable].final_step;
  assign act_wr_data_o = is_norm ? norm_bytes : table_bytes;

`ifndef SYNTHESIS
  // A waiting command stays as it is; a stop or a reset may withdraw it.
  cmd_stable_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      cmd_valid_i && !cmd_ready_o |=> !cmd_valid_i || $stable(
      cmd_i
  ))
  else $error("npu_rows: command changed while it waited");
`endif
endmodule
