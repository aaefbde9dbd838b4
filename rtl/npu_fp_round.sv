// Rounds a float32 number to an integer, half to even, and saturates it to 32 bits.
// Combinational. The result is 0 while `en_i` is low, so that simulation skips the work.
// Infinity (and NaN, which does not occur) saturates by its sign.
module npu_fp_round (
  input  logic        en_i,
  input  logic [31:0] float_i,
  output logic [31:0] value_o   // two's complement
);
  localparam logic [7:0] OneHalf = 8'd126;  // exponent of numbers within [1/2, 1)
  localparam logic [7:0] TooBig = 8'd158;  // exponent of 2^31

  logic [54:0] fixed;  // magnitude with 24 fraction bits
  logic [31:0] magnitude;
  logic round_up;

  always_comb begin
    fixed = '0;
    magnitude = '0;
    round_up = 1'b0;
    value_o = '0;
    if (en_i && float_i[30:23] >= OneHalf) begin
      if (float_i[30:23] >= TooBig) begin
        value_o = {float_i[31], {31{!float_i[31]}}};
      end else begin
        fixed = 55'({1'b1, float_i[22:0]}) << 5'(float_i[30:23] - OneHalf);
        round_up = fixed[23] && (fixed[24] || fixed[22:0] != '0);
        magnitude = {1'b0, fixed[54:24]} + 32'(round_up);
        value_o = float_i[31] ? -magnitude : magnitude;
      end
    end
  end
endmodule
