// Purpose: the depthwise datapath. Lanes are channels and do not mix. With `wide_i` the last three
// columns are multiplied by the three rows of the weight tile, otherwise the newest column by row 0.
// Weights are double buffered as in npu_matrix_mac.
// Latency: row in cycle t, sums in cycle t+1.
// Backpressure: none.

module npu_matrix_depthwise (
  input logic clk_i,
  input logic rst_ni,

  input logic                                                   weight_valid_i,
  input logic                      [$clog2(npu_pkg::LANES)-1:0] weight_index_i,  // tap
  input npu_matrix_pkg::diff_row_t                              weight_row_i,
  input logic                                                   swap_i,

  input  logic                      wide_i,
  input  logic                      valid_i,
  input  npu_matrix_pkg::diff_row_t row_i,
  output npu_pkg::word_row_t        sums_o
);

  localparam int unsigned Taps = npu_pkg::DEPTHWISE_TAPS;
  localparam int unsigned IndexWidth = $clog2(npu_pkg::LANES);

  npu_matrix_pkg::diff_row_t shadow_q[  Taps];
  npu_matrix_pkg::diff_row_t active_q[  Taps];
  npu_matrix_pkg::diff_row_t past_q  [Taps-1];  // 0: the column before, 1: the one before that
  npu_pkg::word_row_t sums_d, sums_q;

  always_ff @(posedge clk_i) begin
    if (swap_i) active_q <= shadow_q;
    for (int t = 0; t < Taps; t++) begin
      if (weight_valid_i && weight_index_i == IndexWidth'(t)) shadow_q[t] <= weight_row_i;
    end
    if (valid_i) begin
      past_q[0] <= row_i;
      past_q[1] <= past_q[0];
    end
  end

  function automatic logic signed [31:0] product(logic [8:0] a, logic [8:0] b);
    return 32'(signed'(a)) * 32'(signed'(b));
  endfunction

  always_comb begin
    sums_d = sums_q;
    if (valid_i && wide_i) begin
      for (int c = 0; c < npu_pkg::LANES; c++) begin
        sums_d[c] = product(past_q[1][c], active_q[0][c]) + product(past_q[0][c], active_q[1][c]) +
            product(row_i[c], active_q[2][c]);
      end
    end else if (valid_i) begin
      for (int c = 0; c < npu_pkg::LANES; c++) sums_d[c] = product(row_i[c], active_q[0][c]);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) sums_q <= '0;
    else sums_q <= sums_d;
  end

  assign sums_o = sums_q;

endmodule
