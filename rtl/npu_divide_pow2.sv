// Divides a signed integer by a power of two and rounds to the nearest, ties away from zero.
// Combinational. The result is 0 while `en_i` is low, so that simulation skips the work.
//
// Half of the divisor is added before the shift, which rounds down: a positive tie goes up. A
// negative one must go down, so one less is added to negative numbers.
module npu_divide_pow2 (
  input  logic               en_i,
  input  logic signed [31:0] value_i,
  input  logic        [ 4:0] shift_i,
  output logic signed [31:0] quotient_o
);
  logic [31:0] half;
  logic signed [32:0] biased;

  always_comb begin
    half = '0;
    biased = '0;
    quotient_o = '0;
    if (en_i) begin
      half   = (32'd1 << shift_i) >> 1;
      biased = 33'(value_i) + $signed({1'b0, half});
      if (value_i[31] && half != '0) biased -= 33'sd1;
      quotient_o = 32'(biased >>> shift_i);
    end
  end
endmodule
