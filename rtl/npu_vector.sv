// Vector engine: DRAIN, POOL, ADD and BINARY. Rows of accumulators or activations become int8 activation
// rows, LANES elements a cycle.
// Latency: the steps of the walk (one a cycle) plus VECTOR_LATENCY cycles from the cycle in which a
// command is accepted to the one in which `done_o` is high.
// Backpressure: `cmd_ready_o` is high while idle; the memories are never waited for.
//
// Stage 0 walk, 1 read addresses, 2 memory data, 3 reduced over the window, 4 with bias, 5 float or
// raised, 6 times multiplier, 7 both operands added, 8 times the sum's multiplier, 9 integer,
// 10 written.
module npu_vector (
  input logic clk_i,
  input logic rst_ni,

  input  logic              cmd_valid_i,
  output logic              cmd_ready_o,
  input  npu_pkg::command_t cmd_i,
  output logic              done_o,

  output logic                      acc_rd_en_o,
  output logic                      acc_rd_bank_o,
  output logic               [15:0] acc_rd_row_o,
  input  npu_pkg::word_row_t        acc_rd_data_i,

  output logic                 act_rd_en_o,
  output logic          [15:0] act_rd_row_o,
  input  npu_pkg::row_t        act_rd_data_i,

  output logic                      par_rd_en_o,
  output logic               [15:0] par_rd_row_o,
  input  npu_pkg::word_row_t        par_rd_data_i,

  output logic                 act_wr_en_o,
  output logic          [15:0] act_wr_row_o,
  output npu_pkg::row_t        act_wr_data_o
);
  localparam int unsigned First = 2;  // stages that this module tracks
  localparam int unsigned Last = 10;

  logic accept, idle_q, start_q, done_q, from_acc;
  npu_vector_pkg::job_t job_d, job_q;
  logic walk_valid;
  npu_vector_pkg::step_t walk_step;
  logic [15:0] src_row;
  logic [Last:First] valid_d, valid_q;
  npu_vector_pkg::step_t [Last:First] step_q;
  npu_vector_pkg::lane_step_t [9:3] lane_step;
  logic scalar;  // stage 2: lane 0 of the row stands for all lanes
  logic unused_index;

  assign accept = cmd_valid_i && idle_q;
  assign cmd_ready_o = idle_q;
  assign done_o = done_q;
  assign unused_index = ^cmd_i.index;

  npu_vector_decode u_decode (
    .en_i   (accept),
    .instr_i(cmd_i.instr),
    .job_o  (job_d)
  );

  npu_vector_walk u_walk (
    .clk_i,
    .rst_ni,
    .start_i  (start_q),
    .job_i    (job_q),
    .valid_o  (walk_valid),
    .step_o   (walk_step),
    .src_row_o(src_row),
    .par_row_o(par_rd_row_o)
  );

  assign from_acc = job_q.source == npu_vector_pkg::SourceAcc;
  assign acc_rd_en_o = walk_valid && !walk_step.param && from_acc;
  assign acc_rd_bank_o = job_q.acc_bank;
  assign acc_rd_row_o = src_row;
  assign act_rd_en_o = walk_valid && !walk_step.param && !from_acc && walk_step.in_range;
  assign act_rd_row_o = src_row;
  assign par_rd_en_o = walk_valid && walk_step.param;

  // Which steps go on: windows end at stage 3, parameters at stage 4, first operands at stage 6.
  always_comb begin
    valid_d = {valid_q[Last-1:First], walk_valid};
    valid_d[4] = valid_q[3] && (step_q[3].param || step_q[3].last ||
        job_q.source == npu_vector_pkg::SourceAdd);
    valid_d[5] = valid_q[4] && !step_q[4].param;
    valid_d[7] = valid_q[6] && step_q[6].last;
    for (int s = 3; s <= 9; s++) begin
      lane_step[s] = {valid_q[s], step_q[s].param, step_q[s].index, step_q[s].last};
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      idle_q  <= 1'b1;
      start_q <= 1'b0;
      done_q  <= 1'b0;
      valid_q <= '0;
    end else begin
      idle_q  <= (idle_q && !cmd_valid_i) || done_q;
      start_q <= accept;
      done_q  <= valid_q[Last] && step_q[Last].final_step;
      valid_q <= valid_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept) job_q <= job_d;
    if (!idle_q) step_q <= {step_q[Last-1:First], walk_step};
  end

  assign scalar = step_q[2].first ? job_q.a_scalar : job_q.b_scalar;

  for (genvar l = 0; l < npu_pkg::LANES; l++) begin : gen_lane
    logic [31:0] value;

    npu_vector_reduce u_reduce (
      .clk_i,
      .valid_i       (valid_q[2]),
      .step_i        (step_q[2]),
      .source_i      (job_q.source),
      .a_zero_point_i(job_q.a_zero_point),
      .b_zero_point_i(job_q.b_zero_point),
      .par_i         (par_rd_data_i[l]),
      .acc_i         (acc_rd_data_i[l]),
      .act_i         (act_rd_data_i[scalar?0 : l]),
      .value_o       (value)
    );

    npu_requant u_requant (
      .clk_i,
      .step_i      (lane_step),
      .source_i    (job_q.source),
      .scale_i     (job_q.scale),
      .subtract_i  (job_q.subtract),
      .zero_point_i(job_q.zero_point),
      .clamp_min_i (job_q.clamp_min),
      .clamp_max_i (job_q.clamp_max),
      .keep_i      (!step_q[9].last_block || 6'(l) < job_q.tail),
      .value_i     (value),
      .byte_o      (act_wr_data_o[l])
    );
  end

  assign act_wr_en_o  = valid_q[Last];
  assign act_wr_row_o = step_q[Last].dst_row;

`ifndef SYNTHESIS
  // A waiting command stays as it is; a stop or a reset may withdraw it.
  cmd_stable_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      cmd_valid_i && !cmd_ready_o |=> !cmd_valid_i || $stable(
      cmd_i
  ))
  else $error("npu_vector: command changed while it waited");
`endif
endmodule
