// What one pixel's elements have in common: the largest one, their sum and sum of squares, and the
// sum of their exponentials. A block's lanes are joined in one cycle, blocks one after another.
// Latency: of a row of elements that is on its memory's output in stage 2, joined with the blocks
// before it, maximum and sums are there in stage 4; of parts in stage 5 the sum is there in stage 7.
// Backpressure: none. Pad lanes count as 0 in sums and as the lowest element in a maximum, which any
// pixel reaches; parts of pad lanes are 0 already.
module npu_rows_reduce (
  input logic clk_i,

  input  logic                               max_en_i,  // stage 2
  input  logic                               sum_en_i,
  input  logic                               first_i,   // the pixel's first block
  input  logic          [npu_pkg::LANES-1:0] keep_i,
  input  npu_pkg::row_t                      act_i,
  output logic signed   [               7:0] max_o,
  output logic signed   [              19:0] sum_o,
  output logic          [              26:0] squares_o,

  input  logic                      parts_en_i,     // stage 5
  input  logic                      parts_first_i,
  input  npu_pkg::word_row_t        parts_i,
  output logic               [31:0] parts_o         // modulo 2^32
);
  logic max_en_q, sum_en_q, first_q, parts_en_q, parts_first_q;
  logic signed [7:0] row_max_d, row_max_q, max_d, max_q;
  // At most 4096 elements: sums of 20 bits, sums of squares (at most 2^26) of 27.
  logic signed [19:0] row_sum_d, row_sum_q, sum_q;
  logic [26:0] row_squares_d, row_squares_q, squares_q;
  logic [31:0] row_parts_d, row_parts_q, parts_q;

  always_comb begin
    row_max_d = 8'h80;
    if (max_en_i) begin
      for (int l = 0; l < npu_pkg::LANES; l++) begin
        if (keep_i[l] && $signed(act_i[l]) > row_max_d) row_max_d = $signed(act_i[l]);
      end
    end
    max_d = (first_q || row_max_q > max_q) ? row_max_q : max_q;
  end

  always_comb begin
    row_sum_d = '0;
    row_squares_d = '0;
    if (sum_en_i) begin
      for (int l = 0; l < npu_pkg::LANES; l++) begin
        if (keep_i[l]) begin
          row_sum_d += 20'($signed(act_i[l]));
          row_squares_d += 27'(16'($signed(act_i[l])) * 16'($signed(act_i[l])));
        end
      end
    end
  end

  always_comb begin
    row_parts_d = '0;
    if (parts_en_i) for (int l = 0; l < npu_pkg::LANES; l++) row_parts_d += parts_i[l];
  end

  always_ff @(posedge clk_i) begin
    max_en_q   <= max_en_i;
    sum_en_q   <= sum_en_i;
    parts_en_q <= parts_en_i;
    if (max_en_i || sum_en_i) first_q <= first_i;
    if (max_en_i) row_max_q <= row_max_d;
    if (max_en_q) max_q <= max_d;
    if (sum_en_i) {row_sum_q, row_squares_q} <= {row_sum_d, row_squares_d};
    if (sum_en_q) begin
      sum_q <= (first_q ? '0 : sum_q) + row_sum_q;
      squares_q <= (first_q ? '0 : squares_q) + row_squares_q;
    end
    if (parts_en_i) {parts_first_q, row_parts_q} <= {parts_first_i, row_parts_d};
    if (parts_en_q) parts_q <= (parts_first_q ? '0 : parts_q) + row_parts_q;
  end

  assign max_o = max_q;
  assign sum_o = sum_q;
  assign squares_o = squares_q;
  assign parts_o = parts_q;
endmodule
