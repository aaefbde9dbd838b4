// Divides a signed integer by a power of two, rounds to the nearest and saturates to 32 bits.
// Combinational. The result is 0 while `en_i` is low, so that simulation skips the work.
//
// With `high_i` the value is first divided by 2^31, rounded (ties up) and saturated on its own: the
// doubling high multiply of a product of two 32-bit numbers. Values are such products, within
// ±2^62, or smaller.
module npu_scale_round (
  input  logic                        en_i,
  input  logic                        high_i,
  input  npu_vector_pkg::tie_e        tie_i,
  input  logic signed          [63:0] value_i,
  input  logic                 [ 5:0] places_i,
  output logic signed          [31:0] rounded_o
);
  localparam logic signed [63:0] Half = 64'sd1 << 30;  // of 2^31
  localparam logic signed [63:0] Highest = (64'sd1 << 31) - 64'sd1;

  logic signed [63:0] value, quotient;
  logic [63:0] below, rest, half;  // bits that are shifted out; of them: the value's, and a tie
  logic tie_up, round_up;

  always_comb begin
    value = '0;
    quotient = '0;
    below = '0;
    rest = '0;
    half = '0;
    tie_up = 1'b0;
    round_up = 1'b0;
    rounded_o = '0;
    if (en_i) begin
      value = value_i;
      if (high_i) begin
        value = (value_i + Half) >>> 31;
        if (value > Highest) value = Highest;
      end
      quotient = value >>> places_i;
      below = ~({64{1'b1}} << places_i);
      rest = value & below;
      half = (below >> 1) + 64'd1;  // never reached where no bit is shifted out
      unique case (tie_i)
        npu_vector_pkg::TieUp: tie_up = 1'b1;
        npu_vector_pkg::TieEven: tie_up = quotient[0];
        default: tie_up = !value[63];
      endcase
      round_up  = rest > half || (rest == half && tie_up);
      quotient  = quotient + 64'(round_up);
      rounded_o = quotient[31:0];
      if (quotient[63:31] != {33{quotient[63]}}) begin
        rounded_o = {quotient[63], {31{!quotient[63]}}};
      end
    end
  end
endmodule
