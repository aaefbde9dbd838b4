// Purpose: prefetches instructions from DRAM, one burst each, and hands them on in order.
// Latency: an instruction can be taken in the cycle after its last beat.
// Backpressure: at most FETCH_DEPTH instructions are buffered or in flight, so the read data channel
// is always accepted. While `run_i` is low no new address is presented; one that waits stays.

module npu_fetch (
  input logic clk_i,
  input logic rst_ni,

  input logic                        clear_i,  // forget what is buffered; only when quiet
  input logic                        run_i,
  input logic [npu_pkg::DRAM_AW-1:0] base_i,
  input logic [                31:0] length_i, // instructions in the program

  output logic                                 ar_valid_o,
  input  logic                                 ar_ready_i,
  output logic          [npu_pkg::DRAM_AW-1:0] ar_addr_o,
  output logic          [                 7:0] ar_len_o,
  input  logic                                 r_valid_i,
  input  npu_pkg::row_t                        r_data_i,
  input  logic                                 r_last_i,
  input  logic                                 r_error_i,

  output logic            instr_valid_o,
  input  logic            instr_ready_i,
  output npu_pkg::instr_t instr_o,
  output logic            instr_error_o,  // a beat of it met a bus error

  output logic quiet_o  // nothing in flight and no address presented
);

  localparam int unsigned Depth = npu_pkg::FETCH_DEPTH;
  localparam int unsigned Beats = npu_pkg::INSTRUCTION_BYTES / npu_pkg::BUS_BYTES;
  localparam int unsigned CountWidth = $clog2(Depth + 1);
  localparam int unsigned PointerWidth = Depth > 1 ? $clog2(Depth) : 1;

  typedef struct packed {
    logic            bus_error;
    npu_pkg::instr_t instr;
  } slot_t;

  logic [31:0] next_d, next_q;  // instruction that is asked for next
  logic [CountWidth-1:0] used_d, used_q;  // buffered or in flight
  logic [CountWidth-1:0] filled_d, filled_q;  // buffered
  logic [PointerWidth-1:0] wr_q, rd_q;
  logic held_q;  // an address waits for ready
  slot_t slots[Depth];
  slot_t assembled;
  npu_pkg::row_t [Beats-1:0] beats_q;
  logic bus_error_q, asked, arrived, taken;

  assign asked = ar_valid_o && ar_ready_i;
  assign arrived = r_valid_i && r_last_i;
  assign taken = instr_valid_o && instr_ready_i;

  assign ar_valid_o = held_q || (run_i && used_q < CountWidth'(Depth) && next_q < length_i);
  assign ar_addr_o = base_i + {2'b00, next_q, 6'd0};
  assign ar_len_o = 8'(Beats - 1);
  assign instr_valid_o = filled_q != '0;
  assign instr_o = slots[rd_q].instr;
  assign instr_error_o = slots[rd_q].bus_error;
  assign quiet_o = used_q == filled_q && !ar_valid_o;

  assign next_d = next_q + 32'(asked);
  assign used_d = used_q + CountWidth'(asked) - CountWidth'(taken);
  assign filled_d = filled_q + CountWidth'(arrived) - CountWidth'(taken);

  // Beats come lowest address first: shift in from the top.
  assign assembled.instr = {r_data_i, beats_q[Beats-1:1]};
  assign assembled.bus_error = bus_error_q || r_error_i;

  function automatic logic [PointerWidth-1:0] after(logic [PointerWidth-1:0] pointer);
    return pointer == PointerWidth'(Depth - 1) ? '0 : pointer + PointerWidth'(1);
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      next_q      <= '0;
      used_q      <= '0;
      filled_q    <= '0;
      wr_q        <= '0;
      rd_q        <= '0;
      held_q      <= 1'b0;
      bus_error_q <= 1'b0;
    end else if (clear_i) begin
      next_q      <= '0;
      used_q      <= '0;
      filled_q    <= '0;
      wr_q        <= '0;
      rd_q        <= '0;
      held_q      <= 1'b0;
      bus_error_q <= 1'b0;
    end else begin
      next_q   <= next_d;
      used_q   <= used_d;
      filled_q <= filled_d;
      held_q   <= ar_valid_o && !ar_ready_i;
      if (r_valid_i) bus_error_q <= assembled.bus_error && !r_last_i;
      if (arrived) wr_q <= after(wr_q);
      if (taken) rd_q <= after(rd_q);
    end
  end

  always_ff @(posedge clk_i) begin
    if (r_valid_i) beats_q <= {r_data_i, beats_q[Beats-1:1]};
    if (arrived) slots[wr_q] <= assembled;
  end

  logic unused_beat;
  assign unused_beat = ^beats_q[0];

`ifndef SYNTHESIS
  address_stable :
  assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
                   ar_valid_o && !ar_ready_i |=> ar_valid_o && $stable(
      ar_addr_o
  ))
  else $error("npu_fetch: address changed while valid and not ready");
  room :
  assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
                   r_valid_i |-> used_q != filled_q)
  else $error("npu_fetch: read data that was not asked for");
`endif

endmodule
