// Adds two float32 numbers, rounding half to even.
// Combinational. The result is 0 while `en_i` is low, so that simulation skips the work.
// Subnormal operands and results count as zero; overflow gives infinity; there are no NaNs
// (opposite infinities give the first one). See npu_fp_mul for why that is enough.
module npu_fp_add (
  input  logic        en_i,
  input  logic [31:0] a_i,
  input  logic [31:0] b_i,
  output logic [31:0] sum_o
);
  localparam logic [30:0] Infinity = {8'hff, 23'b0};

  logic [31:0] larger;
  logic [30:0] lesser;  // magnitude only
  logic [7:0] distance;
  logic [53:0] shifted;  // smaller significand, aligned; the lower half only tells if it is 0
  logic [27:0] total;  // carry, 24 bits of significand, guard, round, sticky
  logic signed [9:0] exponent;
  logic round_up;
  logic signed [32:0] rounded;

  always_comb begin
    larger = (a_i[30:0] >= b_i[30:0]) ? a_i : b_i;
    lesser = (a_i[30:0] >= b_i[30:0]) ? b_i[30:0] : a_i[30:0];
    distance = larger[30:23] - lesser[30:23];
    shifted = '0;
    total = '0;
    exponent = '0;
    round_up = 1'b0;
    rounded = '0;
    sum_o = '0;
    if (en_i) begin
      if (lesser[30:23] != '0) begin
        shifted = {1'b1, lesser[22:0], 30'b0};
        shifted = (distance > 8'd27) ? 54'd1 : shifted >> distance;
      end
      total = {1'b0, larger[30:23] != '0, larger[22:0], 3'b0};
      if (a_i[31] == b_i[31]) total += {1'b0, shifted[53:28], shifted[27:0] != '0};
      else total -= {1'b0, shifted[53:28], shifted[27:0] != '0};
      exponent = {2'b0, larger[30:23]};
      if (total[27]) begin
        total = {1'b0, total[27:2], total[1] || total[0]};
        exponent += 10'sd1;
      end
      if (total[26:11] == '0) begin
        total = {total[11:0], 16'b0};
        exponent -= 10'sd16;
      end
      if (total[26:19] == '0) begin
        total = {total[19:0], 8'b0};
        exponent -= 10'sd8;
      end
      if (total[26:23] == '0) begin
        total = {total[23:0], 4'b0};
        exponent -= 10'sd4;
      end
      if (total[26:25] == '0) begin
        total = {total[25:0], 2'b0};
        exponent -= 10'sd2;
      end
      if (!total[26]) begin
        total = {total[26:0], 1'b0};
        exponent -= 10'sd1;
      end
      round_up = total[2] && (total[3] || total[1:0] != '0);
      rounded  = {exponent, total[25:3]} + 33'(round_up);
      if (larger[30:23] == '1) sum_o = {larger[31], Infinity};
      else if (!total[26]) sum_o = {a_i[31] && b_i[31], 31'b0};
      else if (rounded[32] || rounded[31:23] == '0) sum_o = {larger[31], 31'b0};
      else if (rounded[31:23] >= 9'd255) sum_o = {larger[31], Infinity};
      else sum_o = {larger[31], rounded[30:0]};
    end
  end
endmodule
