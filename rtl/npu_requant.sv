// One lane of the requantizer: integer → + bias → float32 → × multiplier → [+ the other operand's
// product → × inverse scale] → integer → + zero point → clamp. A fixed-point sum leaves floats out:
// integer → × multiplier → + the other operand's product → / 2^shift → + zero point → clamp.
// Parameter words travel through the same stages as the data that they scale and stay where they
// are used, so that the parameters of one block never meet data of another.
// Latency: seven cycles; `value_i` belongs to stage 3 of the vector engine, `byte_o` to stage 10.
// Backpressure: none. `step_i[s]` says what stage s holds in this cycle.
module npu_requant (
  input logic clk_i,

  input npu_vector_pkg::lane_step_t [ 9:3] step_i,
  input npu_vector_pkg::source_e           source_i,
  input logic                              fixed_i,
  input logic signed                [ 7:0] zero_point_i,
  input logic signed                [ 7:0] clamp_min_i,
  input logic signed                [ 7:0] clamp_max_i,
  input logic                              keep_i,        // for stage 9; low: a pad lane
  input logic                       [31:0] value_i,

  output logic [7:0] byte_o
);
  localparam logic [31:0] One = {1'b0, 8'd127, 23'b0};
  localparam int unsigned MultiplierBits = 23;  // of a fixed-point multiplier

  logic has_bias, is_add, is_float_add;
  logic [31:0] bias_q, scale0_q, scale1_q, inverse_q;
  logic [31:0] biased_d, biased_q;  // stage 4
  logic [31:0] operand_d, operand_q;  // stage 5: a float, or the integer of a fixed-point sum
  logic [31:0] multiplier, product_d, product_q;  // stage 6
  logic [31:0] first_q, total_d, total_q;  // stage 7
  logic [31:0] scaled_d, scaled_q;  // stage 8
  logic [31:0] integer_d, integer_q;  // stage 9
  logic [7:0] byte_d, byte_q;  // stage 10
  logic [31:0] from_int, product, sum, scaled, fixed_product, divided, rounded;
  logic signed [32:0] shifted;
  logic unused_steps;

  assign has_bias = source_i == npu_vector_pkg::SourceAcc || source_i == npu_vector_pkg::SourceSum;
  assign is_add = source_i == npu_vector_pkg::SourceAdd;
  assign is_float_add = is_add && !fixed_i;

  npu_fp_from_int u_from_int (
    .en_i   (step_i[4].valid && !step_i[4].param && !fixed_i),
    .value_i(biased_q),
    .float_o(from_int)
  );

  npu_fp_mul u_mul (
    .en_i     (step_i[5].valid && !step_i[5].param && !fixed_i),
    .a_i      (operand_q),
    .b_i      (multiplier),
    .product_o(product)
  );

  npu_fp_add u_add (
    .en_i (step_i[6].valid && step_i[6].last && is_float_add),
    .a_i  (first_q),
    .b_i  (product_q),
    .sum_o(sum)
  );

  npu_fp_mul u_mul_inverse (
    .en_i     (step_i[7].valid && !step_i[7].param && is_float_add),
    .a_i      (total_q),
    .b_i      (inverse_q),
    .product_o(scaled)
  );

  npu_divide_pow2 u_divide (
    .en_i      (step_i[7].valid && !step_i[7].param && fixed_i),
    .value_i   (total_q),
    .shift_i   (inverse_q[4:0]),
    .quotient_o(divided)
  );

  npu_fp_round u_round (
    .en_i   (step_i[8].valid && !fixed_i),
    .float_i(scaled_q),
    .value_o(rounded)
  );

  always_comb begin
    biased_d  = value_i + ((has_bias && !step_i[3].param) ? bias_q : '0);
    operand_d = (step_i[4].param || fixed_i) ? biased_q : from_int;
    if (source_i == npu_vector_pkg::SourceMax) multiplier = One;
    else if (step_i[5].last) multiplier = scale1_q;
    else multiplier = scale0_q;
    fixed_product = '0;
    if (step_i[5].valid && fixed_i) begin
      // An operand without its zero point has 9 bits.
      fixed_product = 32'($signed(operand_q[8:0])) * 32'(multiplier[MultiplierBits-1:0]);
    end
    if (step_i[5].param) product_d = operand_q;
    else product_d = fixed_i ? fixed_product : product;
    if (!is_add || step_i[6].param) total_d = product_q;
    else total_d = fixed_i ? first_q + product_q : sum;
    scaled_d = total_q;
    if (is_add) scaled_d = fixed_i ? divided : scaled;
    integer_d = fixed_i ? scaled_q : rounded;
  end

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
    if (step_i[3].valid) begin
      biased_q <= biased_d;
      if (step_i[3].param && step_i[3].index == 2'd0) bias_q <= value_i;
    end
    if (step_i[4].valid) operand_q <= operand_d;
    if (step_i[5].valid) begin
      product_q <= product_d;
      if (step_i[5].param && step_i[5].index == 2'd0) scale0_q <= operand_q;
      if (step_i[5].param && step_i[5].index == 2'd1) scale1_q <= operand_q;
    end
    if (step_i[6].valid) begin
      total_q <= total_d;
      first_q <= product_q;
    end
    if (step_i[7].valid) begin
      scaled_q <= scaled_d;
      if (step_i[7].param && step_i[7].index == 2'd2) inverse_q <= total_q;
    end
    if (step_i[8].valid) integer_q <= integer_d;
    if (step_i[9].valid) byte_q <= byte_d;
  end

  assign byte_o = byte_q;
  assign unused_steps = ^{step_i[9:8], step_i[7].last, step_i[4].index, step_i[4].last,
      step_i[6].index, step_i[3].last};
endmodule
