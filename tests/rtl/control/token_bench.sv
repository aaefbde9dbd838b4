// Purpose: the four queues and the semaphores together, for their unit test. The test plays dispatch
// and the engines.

module token_bench (
  input logic clk_i,
  input logic rst_ni,
  input logic clear_i,
  input logic load_i,
  input logic run_i,

  input  logic              [ 3:0]      push_valid_i,
  output logic              [ 3:0]      push_ready_o,
  input  npu_pkg::command_t             push_cmd_i,
  output logic              [ 3:0]      cmd_valid_o,
  input  logic              [ 3:0]      cmd_ready_i,
  output logic              [ 3:0][31:0] cmd_index_o,
  input  logic              [ 3:0]      done_i,
  input  logic              [15:0][7:0] preset_i,
  output logic              [15:0][7:0] count_o,
  output logic              [ 3:0]      overflow_o,
  output logic              [ 3:0]      busy_o,
  output logic              [ 3:0]      empty_o,
  output logic              [ 3:0]      start_o,
  output logic              [ 3:0][31:0] running_index_o,
  output logic              [ 3:0][31:0] oldest_index_o
);

  logic [3:0][3:0] tokens, take, give;
  npu_pkg::command_t [3:0] cmd;

  for (genvar e = 0; e < 4; e++) begin : gen_queue
    assign cmd_index_o[e] = cmd[e].index;
    npu_queue u_queue (
      .clk_i,
      .rst_ni,
      .clear_i,
      .run_i,
      .push_valid_i   (push_valid_i[e]),
      .push_ready_o   (push_ready_o[e]),
      .push_cmd_i,
      .tokens_i       (tokens[e]),
      .take_o         (take[e]),
      .give_o         (give[e]),
      .cmd_valid_o    (cmd_valid_o[e]),
      .cmd_ready_i    (cmd_ready_i[e]),
      .cmd_o          (cmd[e]),
      .done_i         (done_i[e]),
      .start_o        (start_o[e]),
      .busy_o         (busy_o[e]),
      .running_index_o(running_index_o[e]),
      .empty_o        (empty_o[e]),
      .oldest_index_o (oldest_index_o[e])
    );
  end

  npu_semaphores u_semaphores (
    .clk_i,
    .rst_ni,
    .load_i,
    .clear_i,
    .preset_i,
    .give_i    (give),
    .take_i    (take),
    .tokens_o  (tokens),
    .overflow_o,
    .count_o
  );

endmodule
