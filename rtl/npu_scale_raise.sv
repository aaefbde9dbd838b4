// Shifts a signed integer left and saturates it to 32 bits.
// Combinational. The result is 0 while `en_i` is low, so that simulation skips the work.
module npu_scale_raise (
  input  logic               en_i,
  input  logic signed [31:0] value_i,
  input  logic        [ 4:0] places_i,
  output logic signed [31:0] raised_o
);
  logic signed [63:0] wide;

  always_comb begin
    wide = '0;
    raised_o = '0;
    if (en_i) begin
      wide = 64'(value_i) <<< places_i;
      raised_o = wide[31:0];
      if (wide[63:31] != {33{wide[63]}}) raised_o = {wide[63], {31{!wide[63]}}};
    end
  end
endmodule
