// One lane of the requantizer: integer → + bias → scaled → + zero point → clamp.
//
// Scaled with floats: integer → float32 → × multiplier → [± the other operand's product → × inverse
// scale] → integer. With integers: [raised →] × mantissa → / 2^n, rounded [→ ± the other operand's
// → raised → × mantissa → / 2^n, rounded]. A fixed-point sum is rounded only once, at the end.
//
// Parameter words are kept from stage 4 on, the bias from stage 3 on. When row i of a block is kept,
// the last data of the block before have passed stage 4 + i, so row 0 may be used up to stage 5,
// row 1 up to stage 6 and so on, and parameters of one block never meet data of another.
// Latency: seven cycles; `value_i` belongs to stage 3 of the vector engine, `byte_o` to stage 10.
// Backpressure: none. `step_i[s]` says what stage s holds in this cycle.
module npu_requant (
  input logic clk_i,

  input npu_vector_pkg::lane_step_t [ 9:3] step_i,
  input npu_vector_pkg::source_e           source_i,
  input npu_vector_pkg::scale_e            scale_i,
  input logic                              subtract_i,
  input logic signed                [ 7:0] zero_point_i,
  input logic signed                [ 7:0] clamp_min_i,
  input logic signed                [ 7:0] clamp_max_i,
  input logic                              keep_i,        // for stage 9; low: a pad lane
  input logic                       [31:0] value_i,

  output logic [7:0] byte_o
);
  localparam int unsigned FixedBits = 23;  // of a fixed-point sum's multipliers
  localparam int unsigned OperandShift = 20;  // both operands of a sum in mode tflite

  // ------------------------------------------------------------------------------ what is to do
  logic is_sum, has_bias, is_float, is_fixed, is_tflite, is_rounded;
  npu_vector_pkg::tie_e tie;

  assign is_sum = source_i == npu_vector_pkg::SourceAdd;
  assign has_bias = !is_sum && source_i != npu_vector_pkg::SourceMax;
  assign is_float = scale_i == npu_vector_pkg::ScaleFloat;
  assign is_fixed = scale_i == npu_vector_pkg::ScaleFixed;
  assign is_tflite = scale_i == npu_vector_pkg::ScaleTflite;
  assign is_rounded = !is_float && !is_fixed && scale_i != npu_vector_pkg::ScaleNone;

  always_comb begin
    unique case (scale_i)
      npu_vector_pkg::ScaleUp: tie = npu_vector_pkg::TieUp;
      npu_vector_pkg::ScaleEven: tie = npu_vector_pkg::TieEven;
      default: tie = npu_vector_pkg::TieAway;
    endcase
  end

  // -------------------------------------------------------------------------------- parameters
  logic [31:0] bias_q, row0_q, row1_q, row2_q;
  logic [5:0] row3_q, row4_q, row5_q;
  logic [31:0] biased_q;  // stage 4, here a parameter word

  always_ff @(posedge clk_i) begin
    if (step_i[3].valid && step_i[3].param && step_i[3].index == 3'd0) bias_q <= value_i;
    if (step_i[4].valid && step_i[4].param) begin
      unique case (step_i[4].index)
        3'd0: row0_q <= biased_q;
        3'd1: row1_q <= biased_q;
        3'd2: row2_q <= biased_q;
        3'd3: row3_q <= biased_q[5:0];
        3'd4: row4_q <= biased_q[5:0];
        default: row5_q <= biased_q[5:0];
      endcase
    end
  end

  // Places to the left before the product, and to the right after it.
  function automatic logic [4:0] left(logic [5:0] shift);
    return shift[5] ? 5'd0 : shift[4:0];
  endfunction

  function automatic logic [5:0] right(logic [5:0] shift, logic tflite);
    if (tflite) return shift[5] ? -shift : 6'd0;
    return 6'd31 - shift;
  endfunction

  function automatic logic [5:0] shift_of(logic sum, logic last, logic [5:0] only,
                                          logic [5:0] first, logic [5:0] second);
    if (!sum) return only;
    return last ? second : first;
  endfunction

  // -------------------------------------------------------------- stage 3 to 6: bias and product
  logic [31:0] biased_d;  // stage 4
  logic [31:0] from_int, to_raise, raised, operand_d, operand_q;  // stage 5: a float or an integer
  logic [31:0] multiplier, product;
  logic [63:0] wide_product, product_d, product_q;  // stage 6: a float or an integer
  logic [5:0] early_shift, late_shift;

  assign early_shift = shift_of(is_sum, step_i[4].last, row2_q[5:0], row3_q, row4_q);
  assign late_shift = shift_of(is_sum, step_i[6].last, row2_q[5:0], row3_q, row4_q);
  assign to_raise = is_sum ? biased_q << OperandShift : biased_q;

  npu_fp_from_int u_from_int (
    .en_i   (step_i[4].valid && !step_i[4].param && is_float),
    .value_i(biased_q),
    .float_o(from_int)
  );

  npu_scale_raise u_raise (
    .en_i    (step_i[4].valid && !step_i[4].param && is_tflite),
    .value_i (to_raise),
    .places_i(left(early_shift)),
    .raised_o(raised)
  );

  npu_fp_mul u_mul (
    .en_i     (step_i[5].valid && is_float),
    .a_i      (operand_q),
    .b_i      (multiplier),
    .product_o(product)
  );

  npu_scale_multiply u_multiply (
    .en_i     (step_i[5].valid && (is_fixed || is_rounded)),
    .a_i      (operand_q),
    .b_i      (multiplier),
    .product_o(wide_product)
  );

  always_comb begin
    biased_d  = value_i + ((has_bias && !step_i[3].param) ? bias_q : '0);
    operand_d = biased_q;
    if (is_float) operand_d = from_int;
    if (is_tflite) operand_d = raised;
    multiplier = (is_sum && !step_i[5].last) ? row0_q : row1_q;
    if (is_fixed) multiplier = {{(32 - FixedBits) {1'b0}}, multiplier[FixedBits-1:0]};
    product_d = 64'(operand_q);
    if (is_float) product_d = 64'(product);
    if (is_fixed || is_rounded) product_d = wide_product;
  end

  // ------------------------------------------------------------- stage 6 to 9: sum and integer
  logic [31:0] rounded_product, scaled, scaled_first_q, sum;
  logic [31:0] total_d, total_q;  // stage 7
  logic [31:0] inverse_product, raised_total;
  logic [63:0] wide_total, final_d, final_q;  // stage 8: a float or an integer
  logic [5:0] places_d, places_q;  // stage 8
  logic [31:0] from_float, rounded_final, integer_d, integer_q;  // stage 9

  npu_scale_round u_round_product (
    .en_i     (step_i[6].valid && is_rounded),
    .high_i   (is_tflite),
    .tie_i    (tie),
    .value_i  (product_q),
    .places_i (right(late_shift, is_tflite)),
    .rounded_o(rounded_product)
  );

  npu_fp_add u_add (
    .en_i (step_i[6].valid && step_i[6].last && is_sum && is_float),
    .a_i  (scaled_first_q),
    .b_i  ({product_q[31] ^ subtract_i, product_q[30:0]}),
    .sum_o(sum)
  );

  npu_fp_mul u_mul_inverse (
    .en_i     (step_i[7].valid && is_sum && is_float),
    .a_i      (total_q),
    .b_i      (row2_q),
    .product_o(inverse_product)
  );

  npu_scale_raise u_raise_total (
    .en_i    (step_i[7].valid && is_sum && is_tflite),
    .value_i (total_q),
    .places_i(left(row5_q)),
    .raised_o(raised_total)
  );

  npu_scale_multiply u_multiply_total (
    .en_i     (step_i[7].valid && is_sum && is_tflite),
    .a_i      (raised_total),
    .b_i      (row2_q),
    .product_o(wide_total)
  );

  npu_fp_round u_round_float (
    .en_i   (step_i[8].valid && is_float),
    .float_i(final_q[31:0]),
    .value_o(from_float)
  );

  npu_scale_round u_round_final (
    .en_i     (step_i[8].valid && is_sum && !is_float),
    .high_i   (is_tflite),
    .tie_i    (npu_vector_pkg::TieAway),
    .value_i  (final_q),
    .places_i (places_q),
    .rounded_o(rounded_final)
  );

  always_comb begin
    scaled  = is_rounded ? rounded_product : product_q[31:0];
    total_d = scaled;
    if (is_sum && is_float) total_d = sum;
    else if (is_sum) total_d = subtract_i ? scaled_first_q - scaled : scaled_first_q + scaled;
    final_d = 64'(signed'(total_q));
    if (is_sum && is_float) final_d = 64'(inverse_product);
    if (is_sum && is_tflite) final_d = wide_total;
    places_d  = is_tflite ? right(row5_q, 1'b1) : {1'b0, row2_q[4:0]};
    integer_d = final_q[31:0];
    if (is_float) integer_d = from_float;
    else if (is_sum) integer_d = rounded_final;
  end

  // ------------------------------------------------------------------- stage 9 to 10: the clamp
  logic signed [32:0] shifted;
  logic [7:0] byte_d, byte_q;  // stage 10

  always_comb begin
    shifted = '0;
    byte_d  = '0;
    if (step_i[9].valid && keep_i) begin
      shifted = {integer_q[31], integer_q} + 33'(zero_point_i);
      if (shifted < 33'(clamp_min_i)) shifted = 33'(clamp_min_i);
      byte_d = (shifted > 33'(clamp_max_i)) ? clamp_max_i : shifted[7:0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (step_i[3].valid) biased_q <= biased_d;
    if (step_i[4].valid) operand_q <= operand_d;
    if (step_i[5].valid) product_q <= product_d;
    if (step_i[6].valid) begin
      total_q <= total_d;
      scaled_first_q <= scaled;
    end
    if (step_i[7].valid) begin
      final_q  <= final_d;
      places_q <= places_d;
    end
    if (step_i[8].valid) integer_q <= integer_d;
    if (step_i[9].valid) byte_q <= byte_d;
  end

  assign byte_o = byte_q;

  logic unused_steps;
  assign unused_steps = ^{step_i[9:7], step_i[6].index, step_i[6].param, step_i[5].index,
      step_i[5].param, step_i[3].last};
endmodule
