// Converts a signed 32-bit integer to float32, rounding half to even.
// Combinational. The result is 0 while `en_i` is low, so that simulation skips the work.
module npu_fp_from_int (
  input  logic        en_i,
  input  logic [31:0] value_i,  // two's complement
  output logic [31:0] float_o
);
  logic sign;
  logic [31:0] norm;  // magnitude, shifted until bit 31 is set
  logic [7:0] exponent;
  logic round_up;

  always_comb begin
    sign = 1'b0;
    norm = '0;
    exponent = '0;
    round_up = 1'b0;
    float_o = '0;
    if (en_i && value_i != '0) begin
      sign = value_i[31];
      norm = sign ? -value_i : value_i;
      exponent = 8'd158;  // that of 2^31
      if (norm[31:16] == '0) begin
        norm = {norm[15:0], 16'b0};
        exponent -= 8'd16;
      end
      if (norm[31:24] == '0) begin
        norm = {norm[23:0], 8'b0};
        exponent -= 8'd8;
      end
      if (norm[31:28] == '0) begin
        norm = {norm[27:0], 4'b0};
        exponent -= 8'd4;
      end
      if (norm[31:30] == '0) begin
        norm = {norm[29:0], 2'b0};
        exponent -= 8'd2;
      end
      if (!norm[31]) begin
        norm = {norm[30:0], 1'b0};
        exponent -= 8'd1;
      end
      round_up = norm[7] && (norm[8] || norm[6:0] != '0);
      // A carry out of the fraction raises the exponent, which is the right result.
      float_o  = {sign, {exponent, norm[30:8]} + 31'(round_up)};
    end
  end
endmodule
