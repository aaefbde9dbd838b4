// A small FIFO whose user knows its fill: it pushes only where there is room and pops only where
// there is a word.
// Latency: a word pushed in cycle t can be at the head in cycle t+1. Backpressure: by `count_o`.
module npu_dma_fifo #(
  parameter  int unsigned Width      = 8,
  parameter  int unsigned Depth      = 4,
  localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
  input logic clk_i,
  input logic rst_ni,

  input  logic                  push_i,
  input  logic [     Width-1:0] data_i,
  input  logic                  pop_i,
  output logic [     Width-1:0] head_o,
  output logic [CountWidth-1:0] count_o
);
  localparam int unsigned PlaceWidth = (Depth > 1) ? $clog2(Depth) : 1;
  typedef logic [PlaceWidth-1:0] place_t;

  logic [Width-1:0] words_q[Depth];
  place_t first_q, free_q;
  logic [CountWidth-1:0] count_q;

  function automatic place_t after(place_t place);
    return (place == place_t'(Depth - 1)) ? '0 : place + 1'b1;
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      first_q <= '0;
      free_q  <= '0;
      count_q <= '0;
    end else begin
      if (pop_i) first_q <= after(first_q);
      if (push_i) free_q <= after(free_q);
      count_q <= count_q + CountWidth'(push_i) - CountWidth'(pop_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (push_i) words_q[free_q] <= data_i;
  end

  assign head_o  = words_q[first_q];
  assign count_o = count_q;

`ifndef SYNTHESIS
  room_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni) push_i |-> count_q != CountWidth'(Depth))
  else $error("npu_dma_fifo: push without room");
  word_a :
  assert property (@(posedge clk_i) disable iff (!rst_ni) pop_i |-> count_q != '0)
  else $error("npu_dma_fifo: pop without a word");
`endif
endmodule
