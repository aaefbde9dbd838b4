npu_ram.sv
npu_act_mem.sv
npu_acc_mem.sv
npu_wgt_mem.sv
npu_par_mem.sv
