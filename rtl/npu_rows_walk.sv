// Walks a job of the row engine, one step a cycle: the pixels row by row, for each one its passes,
// in each pass the blocks. Between two passes it waits until what the first one found is ready.
// Latency: `start_i` in cycle t gives the first step in cycle t+2. Backpressure: none; the memories
// always answer.
module npu_rows_walk (
  input logic clk_i,
  input logic rst_ni,

  input logic               start_i,  // only after the last step of the job before
  input npu_rows_pkg::job_t job_i,    // stable from start_i on

  output logic                       valid_o,
  output npu_rows_pkg::step_t        step_o,
  output logic                [15:0] src_row_o,
  output logic                [15:0] par_row_o
);
  logic active_d, active_q;
  npu_rows_pkg::pass_e pass_d, pass_q, first_pass;
  logic second_d, second_q;
  logic [5:0] wait_d, wait_q;  // cycles that are left of a wait
  logic [11:0] block_d, block_q, ow_d, ow_q, oh_d, oh_q;
  // Rows of the block, of the pixel's block 0, and of the first pixel of the row of pixels.
  logic [15:0] src_d, src_q, src_pixel_d, src_pixel_q, src_line_d, src_line_q;
  logic [15:0] dst_d, dst_q, dst_pixel_d, dst_pixel_q, dst_line_d, dst_line_q;
  logic [15:0] par_d, par_q;
  logic is_norm, waits, step_ends, pass_ends, pixel_ends, block_last, ow_last, oh_last;
  logic unused_job;

  assign is_norm = job_i.kind == npu_rows_pkg::KindNorm;
  assign unused_job = ^{
    job_i.lut, job_i.tail, job_i.count, job_i.gain_bits, job_i.epsilon, job_i.zero_point,
    job_i.clamp_min, job_i.clamp_max
  };

  always_comb begin
    unique case (job_i.kind)
      npu_rows_pkg::KindSoftmax: first_pass = npu_rows_pkg::PassMax;
      npu_rows_pkg::KindNorm: first_pass = npu_rows_pkg::PassSum;
      default: first_pass = npu_rows_pkg::PassOut;
    endcase
  end

  assign waits = wait_q != '0;
  assign block_last = block_q == job_i.blocks - 12'd1;
  assign ow_last = ow_q == job_i.out_w - 12'd1;
  assign oh_last = oh_q == job_i.out_h - 12'd1;
  // The last cycle of a block, of a pass and of a pixel.
  assign step_ends = !waits && (!is_norm || pass_q != npu_rows_pkg::PassOut || second_q);
  assign pass_ends = step_ends && block_last;
  assign pixel_ends = pass_ends && pass_q == npu_rows_pkg::PassOut;

  always_comb begin
    active_d = active_q;
    pass_d = pass_q;
    second_d = second_q;
    wait_d = wait_q;
    {block_d, ow_d, oh_d} = {block_q, ow_q, oh_q};
    {src_d, src_pixel_d, src_line_d} = {src_q, src_pixel_q, src_line_q};
    {dst_d, dst_pixel_d, dst_line_d} = {dst_q, dst_pixel_q, dst_line_q};
    par_d = par_q;
    if (start_i) begin
      active_d = 1'b1;
      pass_d = first_pass;
      second_d = 1'b0;
      wait_d = '0;
      {block_d, ow_d, oh_d} = '0;
      {src_d, src_pixel_d, src_line_d} = {3{job_i.src.base}};
      {dst_d, dst_pixel_d, dst_line_d} = {3{job_i.dst.base}};
      par_d = job_i.par_base;
    end else if (active_q && waits) begin
      wait_d = wait_q - 6'd1;
    end else if (active_q && !step_ends) begin
      second_d = 1'b1;
    end else if (active_q) begin
      second_d = 1'b0;
      block_d  = block_q + 12'd1;
      src_d    = src_q + job_i.src.block_stride;
      if (pass_q == npu_rows_pkg::PassOut) begin
        dst_d = dst_q + job_i.dst.block_stride;
        par_d = par_q + {8'b0, job_i.par_stride};
      end
      if (pass_ends) begin
        block_d = '0;
        src_d   = src_pixel_q;
        unique case (pass_q)
          npu_rows_pkg::PassMax: begin
            pass_d = npu_rows_pkg::PassSum;
            wait_d = npu_rows_pkg::WAIT_MAX;
          end
          npu_rows_pkg::PassSum: begin
            pass_d = npu_rows_pkg::PassOut;
            wait_d = is_norm ? npu_rows_pkg::WAIT_ROOT : npu_rows_pkg::WAIT_RECIPROCAL;
          end
          default: begin
            pass_d = first_pass;
            wait_d = is_norm ? npu_rows_pkg::WAIT_NORM : '0;
          end
        endcase
      end
      if (pixel_ends) begin
        active_d = !(ow_last && oh_last);
        ow_d = ow_last ? '0 : ow_q + 12'd1;
        oh_d = ow_last ? oh_q + 12'd1 : oh_q;
        src_line_d = ow_last ? src_line_q + job_i.src.row_stride : src_line_q;
        dst_line_d = ow_last ? dst_line_q + job_i.dst.row_stride : dst_line_q;
        src_pixel_d = ow_last ? src_line_d : src_pixel_q + job_i.src.col_stride;
        dst_pixel_d = ow_last ? dst_line_d : dst_pixel_q + job_i.dst.col_stride;
        src_d = src_pixel_d;
        dst_d = dst_pixel_d;
        par_d = job_i.par_base;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      valid_o  <= 1'b0;
    end else begin
      active_q <= active_d;
      valid_o  <= active_q && !waits;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i || active_q) begin
      pass_q <= pass_d;
      second_q <= second_d;
      wait_q <= wait_d;
      {block_q, ow_q, oh_q} <= {block_d, ow_d, oh_d};
      {src_q, src_pixel_q, src_line_q} <= {src_d, src_pixel_d, src_line_d};
      {dst_q, dst_pixel_q, dst_line_q} <= {dst_d, dst_pixel_d, dst_line_d};
      par_q <= par_d;
      step_o.pass <= pass_q;
      step_o.second <= second_q;
      step_o.first_block <= block_q == '0;
      step_o.last_block <= block_last;
      step_o.final_step <= block_last && ow_last && oh_last && !second_q &&
          pass_q == npu_rows_pkg::PassOut;
      step_o.dst_row <= dst_q;
      src_row_o <= src_q;
      par_row_o <= par_q + {15'b0, second_q};
    end
  end
endmodule
