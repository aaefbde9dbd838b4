// Purpose: token counts between the four engines, one for each pair of giver and taker.
// Latency: a token given in cycle t is seen in t+1; given and taken in one cycle, a count stays.
// Backpressure: none; takers look before they take. A token beyond SEMAPHORE_MAX is dropped and
// reported by giver in the same cycle.

module npu_semaphores (
  input logic clk_i,
  input logic rst_ni,

  input logic             load_i,   // take the presets
  input logic             clear_i,  // to zero
  input logic [15:0][7:0] preset_i, // index = giver·4 + taker

  input  logic [3:0][3:0] give_i,     // [giver][taker]
  input  logic [3:0][3:0] take_i,     // [taker][giver]
  output logic [3:0][3:0] tokens_o,   // [taker][giver]: at least one is there
  output logic [3:0]      overflow_o, // by giver

  output logic [15:0][7:0] count_o
);

  logic [15:0][7:0] count_d, count_q;

  always_comb begin
    overflow_o = '0;
    tokens_o   = '0;
    count_d    = count_q;
    for (int g = 0; g < 4; g++) begin
      for (int t = 0; t < 4; t++) begin
        tokens_o[t][g] = count_q[4*g+t] != '0;
        if (give_i[g][t] && !take_i[t][g]) begin
          if (count_q[4*g+t] == 8'(npu_pkg::SEMAPHORE_MAX)) overflow_o[g] = 1'b1;
          else count_d[4*g+t] = count_q[4*g+t] + 8'd1;
        end else if (take_i[t][g] && !give_i[g][t]) begin
          count_d[4*g+t] = count_q[4*g+t] - 8'd1;
        end
      end
    end
    if (load_i) count_d = preset_i;
    if (clear_i) count_d = '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) count_q <= '0;
    else count_q <= count_d;
  end

  assign count_o = count_q;

`ifndef SYNTHESIS
  for (genvar t = 0; t < 4; t++) begin : gen_taker
    take_what_is_there :
    assert property (@(posedge clk_i) disable iff (!rst_ni) (take_i[t] & ~tokens_o[t]) == '0)
    else $error("npu_semaphores: a token was taken that is not there");
  end
`endif

endmodule
