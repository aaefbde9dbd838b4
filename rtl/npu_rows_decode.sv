// Turns LOOKUP, SOFTMAX and LAYERNORM into one form: a walk over pixels, passes and blocks.
// Combinational. Meaningful while `en_i` is high (which lets simulation skip the work).
module npu_rows_decode (
  input  logic               en_i,
  input  npu_pkg::instr_t    instr_i,
  output npu_rows_pkg::job_t job_o
);
  npu_pkg::lookup_t lookup;
  npu_pkg::softmax_t softmax;
  npu_pkg::layernorm_t norm;
  logic unused_bits;

  assign lookup = instr_i;
  assign softmax = instr_i;
  assign norm = instr_i;
  // The three have the fields in common that say where rows lie; header bits mean nothing here.
  assign unused_bits = ^{lookup, softmax, norm};

  always_comb begin
    job_o = '0;
    if (en_i) begin
      unique case (norm.opcode)
        npu_pkg::OP_LAYERNORM: begin
          job_o.kind = npu_rows_pkg::KindNorm;
          job_o.src = {norm.in_base, norm.in_row_stride, norm.in_col_stride, norm.in_block_stride};
          job_o.dst = {
            norm.dst_base, norm.dst_row_stride, norm.dst_col_stride, norm.dst_block_stride
          };
          job_o.out_h = norm.out_h;
          job_o.out_w = norm.out_w;
          job_o.blocks = norm.blocks;
          job_o.tail = norm.tail;
          job_o.count = (13'(norm.blocks) - 13'd1) * 13'(npu_pkg::LANES) + 13'(norm.tail);
          job_o.gain_bits = norm.gain_bits;
          job_o.epsilon = 47'(norm.epsilon) << norm.epsilon_shift;
          job_o.par_base = norm.par_base;
          job_o.par_stride = norm.par_stride;
          job_o.zero_point = norm.zero_point;
          job_o.clamp_min = norm.clamp_min;
          job_o.clamp_max = norm.clamp_max;
        end
        npu_pkg::OP_SOFTMAX: begin
          job_o.kind = npu_rows_pkg::KindSoftmax;
          job_o.lut = softmax.lut;
          job_o.src = {
            softmax.in_base, softmax.in_row_stride, softmax.in_col_stride, softmax.in_block_stride
          };
          job_o.dst = {
            softmax.dst_base,
            softmax.dst_row_stride,
            softmax.dst_col_stride,
            softmax.dst_block_stride
          };
          job_o.out_h = softmax.out_h;
          job_o.out_w = softmax.out_w;
          job_o.blocks = softmax.blocks;
          job_o.tail = softmax.tail;
        end
        default: begin
          job_o.kind = npu_rows_pkg::KindLookup;
          job_o.lut = lookup.lut;
          job_o.src = {
            lookup.in_base, lookup.in_row_stride, lookup.in_col_stride, lookup.in_block_stride
          };
          job_o.dst = {
            lookup.dst_base, lookup.dst_row_stride, lookup.dst_col_stride, lookup.dst_block_stride
          };
          job_o.out_h = lookup.out_h;
          job_o.out_w = lookup.out_w;
          job_o.blocks = lookup.blocks;
          job_o.tail = lookup.tail;
        end
      endcase
    end
  end
endmodule
