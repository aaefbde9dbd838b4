// One lane of LAYERNORM: an element's distance from the mean, times the reciprocal of the standard
// deviation (Q11.20), times the gain, plus the offset, to int8:
//   t = count·x - sum;  z = round(t·inverse / 2^places)
//   y = round((z·gain + offset·2^(4 + gain_bits)) / 2^(20 + gain_bits)), ties up
// Latency: an element that is on its memory's output in stage 2 has its byte in stage 8; gain and
// offset of its block are on theirs in stages 3 and 4. Backpressure: none.
//
// At most 4096 elements: |t| < 2^20. t² is at most count·V, so z stays within ±64, 27 bits in Q11.20; the
// root's rounding adds less than 2^-22 of it. y is kept to 10 bits: no zero point brings back what they
// leave out. Pad lanes compute what they like and become 0.
module npu_rows_norm (
  input logic clk_i,

  input logic               [7:2] valid_i,  // of an element, by stage
  input npu_rows_pkg::job_t       job_i,

  input logic signed [ 7:0] act_i,      // stage 2
  input logic signed [19:0] sum_i,
  input logic        [31:0] inverse_i,  // stage 3
  input logic        [ 5:0] places_i,   // stage 4

  input logic               gain_en_i,    // stage 3
  input logic               offset_en_i,  // stage 4
  input logic signed [31:0] par_i,

  input  logic       keep_i,  // stage 7; low: a pad lane
  output logic [7:0] byte_o   // stage 8
);
  logic signed [20:0] distance_d, distance_q;
  logic signed [52:0] product_d, product_q;
  logic signed [26:0] deviation_d, deviation_q;
  logic signed [31:0] gain_q, offset_q;
  logic signed [60:0] total_d, total_q, steps;
  logic signed [9:0] limited_d, limited_q;
  logic signed [10:0] shifted;
  logic [7:0] byte_d, byte_q;
  logic unused_job;

  assign unused_job = ^{
    job_i.kind, job_i.lut, job_i.src, job_i.dst, job_i.out_h, job_i.out_w, job_i.blocks, job_i.tail,
    job_i.epsilon, job_i.par_base, job_i.par_stride
  };

  always_comb begin
    distance_d = '0;
    if (valid_i[2]) begin
      distance_d = 21'(act_i) * $signed({8'b0, job_i.count}) - 21'(sum_i);
    end
    product_d = '0;
    if (valid_i[3]) product_d = 53'(distance_q) * $signed({21'b0, inverse_i});
    deviation_d = '0;
    if (valid_i[4]) begin
      deviation_d = 27'((product_q + (53'sd1 <<< (places_i - 6'd1))) >>> places_i);
    end
    total_d = '0;
    if (valid_i[5]) begin
      total_d = 61'(deviation_q) * 61'(gain_q) +
          (61'(offset_q) <<< (6'd4 + 6'(job_i.gain_bits))) +
          (61'sd1 <<< (6'd19 + 6'(job_i.gain_bits)));
    end
  end

  always_comb begin
    steps = '0;
    limited_d = '0;
    if (valid_i[6]) begin
      steps = total_q >>> (6'd20 + 6'(job_i.gain_bits));
      limited_d = steps[9:0];
      if (steps[60:9] != '0 && steps[60:9] != '1) limited_d = {steps[60], {9{!steps[60]}}};
    end
    shifted = '0;
    byte_d  = '0;
    if (valid_i[7] && keep_i) begin
      shifted = 11'(limited_q) + 11'(job_i.zero_point);
      if (shifted < 11'(job_i.clamp_min)) shifted = 11'(job_i.clamp_min);
      byte_d = (shifted > 11'(job_i.clamp_max)) ? job_i.clamp_max : shifted[7:0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (valid_i[2]) distance_q <= distance_d;
    if (valid_i[3]) product_q <= product_d;
    if (gain_en_i) gain_q <= par_i;
    if (valid_i[4]) deviation_q <= deviation_d;
    if (offset_en_i) offset_q <= par_i;
    if (valid_i[5]) total_q <= total_d;
    if (valid_i[6]) limited_q <= limited_d;
    if (valid_i[7]) byte_q <= byte_d;
  end

  assign byte_o = byte_q;
endmodule
