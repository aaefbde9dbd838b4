// Purpose: the commands that wait for one engine. The head starts when the engine is idle and every
// token that it takes is there; tokens that it gives are given in the engine's end cycle.
// Latency: a command pushed in cycle p can start in p+1.
// Backpressure: `push_ready_o` is low while QUEUE_DEPTH commands wait. `cmd_valid_o` is only raised
// when the engine is idle. While `run_i` is low nothing starts and no token is given.

module npu_queue (
  input logic clk_i,
  input logic rst_ni,

  input logic clear_i,  // drop what waits; only when the engine is idle
  input logic run_i,

  input  logic              push_valid_i,
  output logic              push_ready_o,
  input  npu_pkg::command_t push_cmd_i,

  input  logic [3:0] tokens_i,  // a token is there, by giver
  output logic [3:0] take_o,    // by giver, in the start cycle
  output logic [3:0] give_o,    // by taker, in the end cycle

  output logic              cmd_valid_o,
  input  logic              cmd_ready_i,
  output npu_pkg::command_t cmd_o,
  input  logic              done_i,

  output logic        start_o,          // the engine accepts a command in this cycle
  output logic        busy_o,           // from the cycle after the start to the end cycle
  output logic [31:0] running_index_o,  // valid while busy
  output logic        empty_o,          // nothing waits
  output logic [31:0] oldest_index_o    // of what runs, else of the head
);

  localparam int unsigned Depth = npu_pkg::QUEUE_DEPTH;
  localparam int unsigned CountWidth = $clog2(Depth + 1);
  localparam int unsigned PointerWidth = Depth > 1 ? $clog2(Depth) : 1;

  npu_pkg::command_t slots[Depth];
  npu_pkg::command_t head;
  npu_pkg::end_t head_fields;  // every instruction begins with the fields of END
  logic [CountWidth-1:0] count_d, count_q;
  logic [PointerWidth-1:0] wr_q, rd_q;
  logic push, pop, busy_q;
  logic [31:0] running_index_q;
  logic [ 3:0] running_give_q;

  assign head = slots[rd_q];
  assign head_fields = npu_pkg::end_t'(head.instr);
  assign push_ready_o = count_q < CountWidth'(Depth);
  assign push = push_valid_i && push_ready_o;
  assign cmd_valid_o = count_q != '0 && !busy_q && run_i && (head_fields.take & ~tokens_i) == '0;
  assign cmd_o = head;
  assign pop = cmd_valid_o && cmd_ready_i;
  assign count_d = count_q + CountWidth'(push) - CountWidth'(pop);

  assign take_o = pop ? head_fields.take : '0;
  assign give_o = done_i && run_i ? running_give_q : '0;
  assign start_o = pop;
  assign busy_o = busy_q;
  assign running_index_o = running_index_q;
  assign empty_o = count_q == '0;
  assign oldest_index_o = busy_q ? running_index_q : head.index;

  function automatic logic [PointerWidth-1:0] after(logic [PointerWidth-1:0] pointer);
    return pointer == PointerWidth'(Depth - 1) ? '0 : pointer + PointerWidth'(1);
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q         <= '0;
      wr_q            <= '0;
      rd_q            <= '0;
      busy_q          <= 1'b0;
      running_index_q <= '0;
      running_give_q  <= '0;
    end else if (clear_i) begin
      count_q <= '0;
      wr_q    <= '0;
      rd_q    <= '0;
    end else begin
      count_q <= count_d;
      if (push) wr_q <= after(wr_q);
      if (pop) begin
        rd_q            <= after(rd_q);
        busy_q          <= 1'b1;
        running_index_q <= head.index;
        running_give_q  <= head_fields.give;
      end else if (done_i) begin
        busy_q <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (push) slots[wr_q] <= push_cmd_i;
  end

  logic unused_fields;
  assign unused_fields = ^{head_fields.reserved, head_fields.opcode};

`ifndef SYNTHESIS
  push_stable :
  assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i || !run_i)
                   push_valid_i && !push_ready_o |=> push_valid_i && $stable(
      push_cmd_i
  ))
  else $error("npu_queue: command changed while valid and not ready");
  done_while_busy :
  assert property (@(posedge clk_i) disable iff (!rst_ni) done_i |-> busy_q)
  else $error("npu_queue: engine is done with nothing");
`endif

endmodule
