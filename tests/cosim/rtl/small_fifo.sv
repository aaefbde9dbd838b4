// A FIFO for the tests of the unit bench itself.
// Latency: one cycle from input to output. Backpressure: in_ready_o is low while full.
// `Break` plants a bug: 1 corrupts a word, 2 lets data change while the output is stalled.
module small_fifo #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 4,
  parameter int unsigned Break = 0
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [Width-1:0] in_data_i,
  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [Width-1:0] out_data_o
);
  localparam int unsigned PtrW = $clog2(Depth);

  logic [Width-1:0] mem_q[Depth];
  logic [PtrW-1:0] wptr_q, rptr_q;
  logic [PtrW:0] count_q;
  logic [7:0] age_q;
  logic push, pop;

  assign in_ready_o = count_q != (PtrW + 1)'(Depth);
  assign out_valid_o = count_q != '0;
  assign push = in_valid_i && in_ready_o;
  assign pop = out_valid_o && out_ready_i;
  assign out_data_o = mem_q[rptr_q] ^ ((Break == 2) ? Width'(age_q) : '0) ^
      Width'(Break == 1 && rptr_q == '1);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wptr_q  <= '0;
      rptr_q  <= '0;
      count_q <= '0;
      age_q   <= '0;
    end else begin
      age_q <= (out_valid_o && !out_ready_i) ? age_q + 1'b1 : '0;
      if (push) wptr_q <= wptr_q + 1'b1;
      if (pop) rptr_q <= rptr_q + 1'b1;
      count_q <= count_q + (PtrW + 1)'(push) - (PtrW + 1)'(pop);
    end
  end

  always_ff @(posedge clk_i) begin
    if (push) mem_q[wptr_q] <= in_data_i;
  end

`ifndef SYNTHESIS
  out_stable_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      out_valid_o && !out_ready_i |=> out_valid_o && $stable(
      out_data_o
  ))
  else $error("small_fifo: output changed while stalled");
`endif
endmodule
