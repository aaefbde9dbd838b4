// Purpose: the LANES×LANES array. Weights are stationary; a tile is written row by row (or, where
// its rows are output lanes, column by column) into shadow registers and becomes active as a whole
// with the first column that uses it. Each activation row is
// broadcast: every output lane has one adder tree over LANES products.
// Latency: row in cycle t, sums in cycle t+1. The accumulate stage has a register before and after
// its adder, which a synthesis tool may move into the tree.
// Backpressure: none.

module npu_matrix_mac (
  input logic clk_i,
  input logic rst_ni,

  input logic weight_valid_i,
  input logic weight_transposed_i,
  input logic [$clog2(npu_pkg::LANES)-1:0] weight_index_i,  // input lane; output lane if transposed
  input npu_matrix_pkg::diff_row_t weight_row_i,  // by output lane; by input lane if transposed
  input logic swap_i,  // shadow → active, seen in t+1

  input  logic                      valid_i,
  input  npu_matrix_pkg::diff_row_t row_i,    // by input lane
  output npu_pkg::word_row_t        sums_o    // by output lane
);

  localparam int unsigned Lanes = npu_pkg::LANES;

  // Words, not 9 bits: simulators multiply them as they are, and synthesis drops copies of the sign.
  logic signed [31:0] shadow_q[Lanes][Lanes];
  logic signed [31:0] active_q[Lanes][Lanes];
  logic signed [31:0] sums[Lanes];
  npu_pkg::word_row_t sums_q;

  // No reset: weights are written before they are used.
  always_ff @(posedge clk_i) begin
    if (swap_i) active_q <= shadow_q;
    if (weight_valid_i && weight_transposed_i) begin
      for (int i = 0; i < Lanes; i++) shadow_q[i][weight_index_i] <= 32'(signed'(weight_row_i[i]));
    end else if (weight_valid_i) begin
      for (int o = 0; o < Lanes; o++) shadow_q[weight_index_i][o] <= 32'(signed'(weight_row_i[o]));
    end
  end

  always_comb begin
    automatic logic signed [31:0] x = '0;
    for (int o = 0; o < Lanes; o++) sums[o] = '0;
    if (valid_i) begin
      for (int i = 0; i < Lanes; i++) begin
        x = 32'(signed'(row_i[i]));
        /*verilator unroll_disable*/
        for (int o = 0; o < Lanes; o++) sums[o] = sums[o] + x * active_q[i][o];
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sums_q <= '0;
    end else if (valid_i) begin
      for (int o = 0; o < Lanes; o++) sums_q[o] <= sums[o];
    end
  end

  assign sums_o = sums_q;

endmodule
