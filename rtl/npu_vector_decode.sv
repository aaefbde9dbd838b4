// Turns DRAIN, POOL and ADD into one form: a walk over blocks, rows, columns and a window.
// DRAIN is a window of one accumulator row. ADD is a window of two columns, of which the first lies
// in tensor a and the second in tensor b at the same place (dilation 0).
// Combinational. Meaningful while `en_i` is high (which lets simulation skip the work).
module npu_vector_decode (
  input  logic                 en_i,
  input  npu_pkg::instr_t      instr_i,
  output npu_vector_pkg::job_t job_o
);
  npu_pkg::drain_t drain;
  npu_pkg::pool_t  pool;
  npu_pkg::add_t   add;

  assign drain = instr_i;
  assign pool  = instr_i;
  assign add   = instr_i;

  always_comb begin
    job_o = '0;
    job_o.in_h = '1;  // no padding
    job_o.in_w = '1;
    job_o.stride_h = 5'd1;
    job_o.stride_w = 5'd1;
    job_o.window_h = 5'd1;
    job_o.window_w = 5'd1;
    if (en_i) begin
      unique case (pool.opcode)
        npu_pkg::OP_POOL: begin
          job_o.source = pool.sum ? npu_vector_pkg::SourceSum : npu_vector_pkg::SourceMax;
          job_o.a = {pool.in_base, pool.in_row_stride, pool.in_col_stride, pool.in_block_stride};
          job_o.dst = {
            pool.dst_base, pool.dst_row_stride, pool.dst_col_stride, pool.dst_block_stride
          };
          job_o.in_h = pool.in_h;
          job_o.in_w = pool.in_w;
          job_o.origin_h = pool.origin_h;
          job_o.origin_w = pool.origin_w;
          job_o.stride_h = pool.stride_h;
          job_o.stride_w = pool.stride_w;
          job_o.dilation_h = pool.dilation_h;
          job_o.dilation_w = pool.dilation_w;
          job_o.window_h = pool.kernel_h;
          job_o.window_w = pool.kernel_w;
          job_o.out_h = pool.out_h;
          job_o.out_w = pool.out_w;
          job_o.blocks = pool.blocks;
          job_o.tail = pool.tail;
          job_o.params = pool.sum ? 2'd2 : 2'd0;
          job_o.par_base = pool.par_base;
          job_o.par_stride = pool.par_stride;
          job_o.a_zero_point = pool.sum ? pool.input_zero_point : '0;
          job_o.zero_point = pool.sum ? pool.zero_point : '0;
          job_o.clamp_min = pool.clamp_min;
          job_o.clamp_max = pool.clamp_max;
        end
        npu_pkg::OP_ADD: begin
          job_o.source = npu_vector_pkg::SourceAdd;
          job_o.fixed = add.mode[0];
          job_o.a = {add.a_base, add.a_row_stride, add.a_col_stride, add.a_block_stride};
          job_o.b = {add.b_base, add.b_row_stride, add.b_col_stride, add.b_block_stride};
          job_o.dst = {add.dst_base, add.dst_row_stride, add.dst_col_stride, add.dst_block_stride};
          job_o.window_w = 5'd2;
          job_o.out_h = add.out_h;
          job_o.out_w = add.out_w;
          job_o.blocks = add.blocks;
          job_o.tail = add.tail;
          job_o.params = 2'd3;
          job_o.par_base = add.par_base;
          job_o.par_stride = add.par_stride;
          job_o.a_zero_point = add.a_zero_point;
          job_o.b_zero_point = add.b_zero_point;
          job_o.zero_point = add.zero_point;
          job_o.clamp_min = add.clamp_min;
          job_o.clamp_max = add.clamp_max;
        end
        default: begin
          job_o.source = npu_vector_pkg::SourceAcc;
          job_o.acc_bank = drain.acc_bank;
          job_o.a.base = drain.acc_base;
          job_o.a.col_stride = 16'd1;
          job_o.a.row_stride = {4'b0, drain.out_w};
          job_o.a.block_stride = {4'b0, drain.out_w} * {4'b0, drain.out_h};
          job_o.dst = {
            drain.dst_base, drain.dst_row_stride, drain.dst_col_stride, drain.dst_block_stride
          };
          job_o.out_h = drain.out_h;
          job_o.out_w = drain.out_w;
          job_o.blocks = drain.blocks;
          job_o.tail = drain.tail;
          job_o.params = 2'd2;
          job_o.par_base = drain.par_base;
          job_o.par_stride = drain.par_stride;
          job_o.zero_point = drain.zero_point;
          job_o.clamp_min = drain.clamp_min;
          job_o.clamp_max = drain.clamp_max;
        end
      endcase
    end
  end
endmodule
