// Purpose: the course of a run. Starts it, counts its cycles, stops it on an error, the watchdog or
// a soft reset, and says when it is over.
// Latency: `start_i` is cycle 0 of a run; `run_o` is high from cycle 1 to the cycle before a stop or
// the end. Status outputs follow the last cycle of a run by one.
// Backpressure: none.

module npu_control (
  input logic clk_i,
  input logic rst_ni,

  input logic        start_i,        // one cycle, never while busy
  input logic        reset_i,        // one cycle: soft reset is asked for
  input logic [31:0] watchdog_i,     // 0: never
  input logic [31:0] opcodes_i,      // opcodes that the program may hold
  input logic [63:0] program_hash_i, // contract hash that it was made for

  // What the machine does in this cycle.
  input logic [ 3:0]       engine_busy_i,
  input logic [ 3:0]       queue_empty_i,
  input logic              fetch_quiet_i,
  input logic              end_i,            // END is checked and waits
  input logic [ 3:0][31:0] running_index_i,
  input logic [ 3:0][31:0] oldest_index_i,   // valid where busy or not empty
  input logic [31:0]       dispatch_index_i,

  // Error events.
  input logic       dispatch_error_i,
  input logic [7:0] dispatch_code_i,
  input logic       load_error_i,
  input logic       store_error_i,
  input logic [3:0] overflow_i,        // by giver
  input logic [3:0] conflict_i,        // engines that met at a memory port

  output logic        run_o,
  output logic        clear_o,         // queues, fetch and dispatch begin anew
  output logic        reset_o,         // one cycle: registers and semaphores to zero
  output logic        finish_o,        // last cycle of a run
  output logic        busy_o,
  output logic        resetting_o,
  output logic        done_o,
  output logic        error_o,
  output logic [ 7:0] error_code_o,
  output logic [31:0] error_index_o,
  output logic [ 2:0] error_engine_o,
  output logic [63:0] cycles_o
);

  localparam int unsigned Sources = 10;

  logic run_q, stop_q, resetting_q, done_q;
  logic [63:0] cycle_q;  // number of this cycle, then of the last one
  logic event_now, error_valid, engines_idle, retire, stopped, contract_ok, watchdog_now;

  assign engines_idle = engine_busy_i == '0;
  assign retire = run_q && !stop_q && end_i && engines_idle && &queue_empty_i && fetch_quiet_i;
  assign stopped = stop_q && engines_idle && fetch_quiet_i;
  assign finish_o = retire || (run_q && stopped && !resetting_q);
  assign reset_o = resetting_q && stopped;
  assign clear_o = start_i || reset_o;
  assign run_o = run_q && !stop_q;
  assign watchdog_now = run_o && watchdog_i != '0 && cycle_q == 64'(watchdog_i) && !retire;

  // --------------------------------------------------------------------------------- the contract
  always_comb begin
    contract_ok = 1'b1;
    if (start_i) begin
      automatic logic [63:0] hash = '0;
      for (int i = 0; i < 32; i++) if (opcodes_i[i]) hash ^= npu_pkg::row_hash(5'(i));
      contract_ok = hash == program_hash_i;
    end
  end

  // ------------------------------------------------------- who is oldest, who met at a memory port
  logic [31:0] oldest_index, conflict_index;
  logic [2:0] oldest_engine, conflict_engine;

  always_comb begin
    oldest_index    = dispatch_index_i;
    oldest_engine   = npu_pkg::ENGINE_DISPATCH;
    conflict_index  = '1;
    conflict_engine = npu_pkg::ENGINE_DISPATCH;
    if (watchdog_now) begin
      for (int e = 0; e < 4; e++) begin
        if ((engine_busy_i[e] || !queue_empty_i[e]) && oldest_index_i[e] < oldest_index) begin
          oldest_index  = oldest_index_i[e];
          oldest_engine = 3'(e);
        end
      end
    end
    if (conflict_i != '0) begin
      for (int e = 0; e < 4; e++) begin
        if (conflict_i[e] && running_index_i[e] < conflict_index) begin
          conflict_index  = running_index_i[e];
          conflict_engine = 3'(e);
        end
      end
    end
  end

  npu_errors #(
    .Sources(Sources)
  ) u_errors (
    .clk_i,
    .rst_ni,
    .clear_i(reset_o || start_i),
    .enable_i(run_q || start_i),
    // The order decides between equal indices; the last one comes first in these lists.
    .valid_i({
      start_i && !contract_ok,
      watchdog_now,
      dispatch_error_i,
      conflict_i != '0,
      overflow_i,
      store_error_i,
      load_error_i
    }),
    .code_i({
      npu_pkg::ERR_CONTRACT,
      npu_pkg::ERR_WATCHDOG,
      dispatch_code_i,
      npu_pkg::ERR_BANK,
      {4{npu_pkg::ERR_SEMAPHORE}},
      npu_pkg::ERR_BUS_WRITE,
      npu_pkg::ERR_BUS_READ
    }),
    .index_i({
      32'd0,
      oldest_index,
      dispatch_index_i,
      conflict_index,
      running_index_i,
      running_index_i[npu_pkg::ENGINE_STORE[1:0]],
      running_index_i[npu_pkg::ENGINE_LOAD[1:0]]
    }),
    .engine_i({
      npu_pkg::ENGINE_DISPATCH,
      oldest_engine,
      npu_pkg::ENGINE_DISPATCH,
      conflict_engine,
      npu_pkg::ENGINE_STORE,
      npu_pkg::ENGINE_VECTOR,
      npu_pkg::ENGINE_MATRIX,
      npu_pkg::ENGINE_LOAD,
      npu_pkg::ENGINE_STORE,
      npu_pkg::ENGINE_LOAD
    }),
    .event_o(event_now),
    .valid_o(error_valid),
    .code_o(error_code_o),
    .index_o(error_index_o),
    .engine_o(error_engine_o)
  );

  // --------------------------------------------------------------------------------------- state
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      run_q       <= 1'b0;
      stop_q      <= 1'b0;
      resetting_q <= 1'b0;
      done_q      <= 1'b0;
      cycle_q     <= '0;
    end else if (reset_o) begin
      run_q       <= 1'b0;
      stop_q      <= 1'b0;
      resetting_q <= 1'b0;
      done_q      <= 1'b0;
      cycle_q     <= '0;
    end else begin
      if (start_i) begin
        run_q   <= 1'b1;
        done_q  <= 1'b0;
        cycle_q <= 64'd1;
      end else if (run_q && !finish_o) begin
        cycle_q <= cycle_q + 64'd1;
      end
      if (finish_o) begin
        run_q  <= 1'b0;
        stop_q <= 1'b0;
        done_q <= retire;
      end else if (event_now) begin
        stop_q <= 1'b1;
      end
      if (reset_i) begin
        resetting_q <= 1'b1;
        stop_q      <= 1'b1;
      end
    end
  end

  assign busy_o      = run_q || start_i;
  assign resetting_o = resetting_q;
  assign done_o      = done_q;
  assign error_o     = error_valid && !run_q;
  assign cycles_o    = cycle_q;

endmodule
