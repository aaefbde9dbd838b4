// Purpose: checks one instruction after another (opcode, fields, then one extent slot a cycle) and
// pushes it into the queue of its engine, or reports the first violation.
// Latency: an instruction taken in cycle f is pushed in f + DISPATCH_CYCLES at the earliest; its
// violation is an event in that same cycle. The next one is taken in the cycle after the push.
// Backpressure: waits at a full queue, and every later instruction with it. END stays until
// `clear_i`, `end_o` says so. While `run_i` is low nothing moves.

module npu_dispatch (
  input logic clk_i,
  input logic rst_ni,

  input logic              clear_i,    // back to instruction 0
  input logic              run_i,
  input logic [31:0]       length_i,   // instructions in the program
  input logic [31:0]       opcodes_i,  // bit i: opcode i may occur
  input logic [ 7:0][31:0] size_i,     // bytes reachable from each base register

  input  logic            instr_valid_i,
  output logic            instr_ready_o,
  input  npu_pkg::instr_t instr_i,
  input  logic            instr_error_i,

  output logic              [3:0] push_valid_o,  // bit = engine
  input  logic              [3:0] push_ready_i,
  output npu_pkg::command_t       push_cmd_o,

  output logic        end_o,          // END is checked and waits
  output logic        error_valid_o,  // event
  output logic [ 7:0] error_code_o,
  output logic [31:0] index_o         // of the instruction in hand, or the next one
);

  localparam int unsigned CountWidth = $clog2(npu_pkg::DISPATCH_CYCLES + 1);
  localparam int unsigned SlotWidth = $clog2(npu_pkg::EXTENT_SLOTS);
  localparam logic [CountWidth-1:0] LastCheck = CountWidth'(npu_pkg::DISPATCH_CYCLES);
  localparam int unsigned BeatBits = $clog2(npu_pkg::BUS_BYTES);

  typedef enum logic [2:0] {
    StIdle,
    StCheck,
    StPush,
    StEnd,
    StStop
  } state_e;

  state_e state_d, state_q;
  logic [CountWidth-1:0] check_d, check_q;  // 1 in the first cycle of the check
  logic [31:0] index_d, index_q;
  logic [7:0] code_d, code_q;  // first violation so far
  npu_pkg::instr_t instr_q;
  npu_pkg::extent_t extent_d, extent_q;  // of the slot of the cycle before
  logic bus_error_q, take, past_end;

  assign past_end      = index_q == length_i;
  assign instr_ready_o = state_q == StIdle && run_i && !past_end;
  assign take          = instr_ready_o && instr_valid_i;
  assign index_o       = index_q;
  assign push_cmd_o    = '{index: index_q, instr: instr_q};

  // --------------------------------------------------------------------------------- the checks
  logic [7:0] opcode;
  logic is_end, is_known;
  assign opcode   = instr_q[7:0];
  assign is_known = npu_pkg::opcode_known(opcode) && opcode < 8'd32 && opcodes_i[opcode[4:0]];
  assign is_end   = opcode == npu_pkg::OP_END;

  always_comb begin
    extent_d = extent_q;
    if (state_q == StCheck && check_q < LastCheck) begin
      extent_d = npu_pkg::extent(instr_q, SlotWidth'(check_q - CountWidth'(1)));
    end
  end

  always_comb begin
    code_d = code_q;
    if (state_q == StCheck && check_q == CountWidth'(1)) begin
      code_d = npu_pkg::ERR_NONE;
      if (bus_error_q) code_d = npu_pkg::ERR_BUS_FETCH;
      else if (!is_known) code_d = npu_pkg::ERR_OPCODE;
      else if (!npu_pkg::fields_legal(instr_q)) code_d = npu_pkg::ERR_FIELD;
    end else if (state_q == StCheck && code_q == npu_pkg::ERR_NONE && extent_q.valid) begin
      if (extent_q.dram) begin
        if ({extent_q.end_row, BeatBits'(0)} > (48 + BeatBits)'(size_i[extent_q.base_reg])) begin
          code_d = npu_pkg::ERR_DRAM_EXTENT;
        end
      end else if (extent_q.end_row > extent_q.limit) begin
        code_d = npu_pkg::ERR_EXTENT;
      end
    end
  end

  // ------------------------------------------------------------------------------------- states
  logic [2:0] engine;
  assign engine = npu_pkg::engine_of(opcode);

  always_comb begin
    state_d       = state_q;
    check_d       = check_q;
    index_d       = index_q;
    push_valid_o  = '0;
    error_valid_o = 1'b0;
    error_code_o  = code_d;
    end_o         = 1'b0;
    unique case (state_q)
      StIdle: begin
        check_d = CountWidth'(1);
        if (take) begin
          state_d = StCheck;
        end else if (run_i && past_end) begin
          error_valid_o = 1'b1;
          error_code_o  = npu_pkg::ERR_NO_END;
          state_d       = StStop;
        end
      end
      StCheck, StPush: begin
        if (state_q == StCheck && check_q != LastCheck) begin
          check_d = check_q + CountWidth'(1);
        end else if (code_d != npu_pkg::ERR_NONE) begin
          error_valid_o = run_i;
          state_d       = StStop;
        end else if (is_end) begin
          end_o   = 1'b1;
          state_d = StEnd;
        end else begin
          push_valid_o[engine[1:0]] = run_i;
          state_d                   = StPush;
          if (run_i && push_ready_i[engine[1:0]]) begin
            state_d = StIdle;
            index_d = index_q + 32'd1;
          end
        end
      end
      StEnd:   end_o = 1'b1;
      StStop:  ;
      default: state_d = StStop;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q     <= StIdle;
      check_q     <= '0;
      index_q     <= '0;
      code_q      <= npu_pkg::ERR_NONE;
      instr_q     <= '0;
      bus_error_q <= 1'b0;
      extent_q    <= '0;
    end else if (clear_i) begin
      state_q <= StIdle;
      index_q <= '0;
    end else begin
      state_q  <= state_d;
      check_q  <= check_d;
      index_q  <= index_d;
      code_q   <= code_d;
      extent_q <= extent_d;
      if (take) begin
        instr_q     <= instr_i;
        bus_error_q <= instr_error_i;
      end
    end
  end

  logic unused_engine;
  assign unused_engine = engine[2];

`ifndef SYNTHESIS
  instr_stable :
  assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
                   instr_valid_i && !instr_ready_o |=> instr_valid_i && $stable(
      instr_i
  ))
  else $error("npu_dispatch: instruction changed while valid and not ready");
`endif

endmodule
