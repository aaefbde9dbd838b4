// Multiplies two float32 numbers, rounding half to even.
// Combinational. The result is 0 while `en_i` is low, so that simulation skips the work.
//
// Subnormal operands and results count as zero; overflow gives infinity; there are no NaNs. With
// multipliers within [2^-100, 2^100] this never changes a requantized integer: the first product
// of an operand of magnitude 1 or more is at least 2^-100, so normal; the difference of two such
// products is 0 or at least 2^-123; and whatever is lost in the last product is far below 1/2.
module npu_fp_mul (
  input  logic        en_i,
  input  logic [31:0] a_i,
  input  logic [31:0] b_i,
  output logic [31:0] product_o
);
  localparam logic [9:0] Bias = 10'd127;
  localparam logic [30:0] Infinity = {8'hff, 23'b0};

  logic sign, zero, infinite, round_up;
  logic [47:0] wide;
  logic signed [9:0] exponent;
  logic signed [32:0] rounded;  // {exponent, fraction} after rounding

  always_comb begin
    sign = a_i[31] ^ b_i[31];
    zero = a_i[30:23] == '0 || b_i[30:23] == '0;
    infinite = a_i[30:23] == '1 || b_i[30:23] == '1;
    wide = '0;
    exponent = '0;
    round_up = 1'b0;
    rounded = '0;
    product_o = '0;
    if (en_i) begin
      wide = 48'({1'b1, a_i[22:0]}) * 48'({1'b1, b_i[22:0]});
      exponent = {2'b0, a_i[30:23]} + {2'b0, b_i[30:23]} - Bias;
      if (wide[47]) exponent += 10'sd1;
      else wide = {wide[46:0], 1'b0};
      round_up = wide[23] && (wide[24] || wide[22:0] != '0);
      rounded  = {exponent, wide[46:24]} + 33'(round_up);
      if (zero || rounded[32] || rounded[31:23] == '0) product_o = {sign, 31'b0};
      else if (infinite || rounded[31:23] >= 9'd255) product_o = {sign, Infinity};
      else product_o = {sign, rounded[30:0]};
    end
  end
endmodule
