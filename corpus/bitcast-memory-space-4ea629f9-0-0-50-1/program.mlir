module @jit_loss attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @empty_mesh = <[]> {stablehlo.mesh = {axes = []}}
  func.func public @main(%arg0: tensor<2x1x1xf32> {mhlo.memory_kind = "device", sdy.sharding = #sdy.sharding<@empty_mesh, [{}, {}, {}]>}) -> (tensor<2x1x1xf32> {jax.result_info = "result", mhlo.memory_kind = "device"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x2x2x1xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %2:4 = stablehlo.while(%iterArg = %arg0, %iterArg_4 = %c, %iterArg_5 = %0, %iterArg_6 = %1) : tensor<2x1x1xf32>, tensor<i32>, tensor<2x1xf32>, tensor<2x2x2x1xf32>
    cond {
      %c_7 = stablehlo.constant dense<2> : tensor<i32>
      %6 = stablehlo.compare LT, %iterArg_4, %c_7, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %6:2 = func.call @closed_call(%iterArg, %iterArg_5) : (tensor<2x1x1xf32>, tensor<2x1xf32>) -> (tensor<2x1xf32>, tensor<2x2x1xf32>)
      %7 = func.call @dynamic_update_index_in_dim(%iterArg_6, %6#1, %iterArg_4) : (tensor<2x2x2x1xf32>, tensor<2x2x1xf32>, tensor<i32>) -> tensor<2x2x2x1xf32>
      %c_7 = stablehlo.constant dense<1> : tensor<i32>
      %8 = stablehlo.add %iterArg_4, %c_7 : tensor<i32>
      stablehlo.return %iterArg, %8, %6#0, %7 : tensor<2x1x1xf32>, tensor<i32>, tensor<2x1xf32>, tensor<2x2x2x1xf32>
    }
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x1xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x1x1xf32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %5:5 = stablehlo.while(%iterArg = %2#3, %iterArg_4 = %arg0, %iterArg_5 = %c_3, %iterArg_6 = %4, %iterArg_7 = %3) : tensor<2x2x2x1xf32>, tensor<2x1x1xf32>, tensor<i32>, tensor<2x1x1xf32>, tensor<2x1xf32>
    cond {
      %c_8 = stablehlo.constant dense<2> : tensor<i32>
      %6 = stablehlo.compare LT, %iterArg_5, %c_8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %c_8 = stablehlo.constant dense<2> : tensor<i32>
      %6 = stablehlo.subtract %c_8, %iterArg_5 : tensor<i32>
      %c_9 = stablehlo.constant dense<1> : tensor<i32>
      %7 = stablehlo.subtract %6, %c_9 : tensor<i32>
      %8 = func.call @dynamic_index_in_dim(%iterArg, %7) : (tensor<2x2x2x1xf32>, tensor<i32>) -> tensor<2x2x1xf32>
      %9:2 = func.call @closed_call_1(%iterArg_4, %iterArg_6, %iterArg_7, %8) : (tensor<2x1x1xf32>, tensor<2x1x1xf32>, tensor<2x1xf32>, tensor<2x2x1xf32>) -> (tensor<2x1x1xf32>, tensor<2x1xf32>)
      %c_10 = stablehlo.constant dense<1> : tensor<i32>
      %10 = stablehlo.add %iterArg_5, %c_10 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_4, %10, %9#0, %9#1 : tensor<2x2x2x1xf32>, tensor<2x1x1xf32>, tensor<i32>, tensor<2x1x1xf32>, tensor<2x1xf32>
    }
    return %5#3 : tensor<2x1x1xf32>
  }
  func.func private @closed_call(%arg0: tensor<2x1x1xf32>, %arg1: tensor<2x1xf32>) -> (tensor<2x1xf32>, tensor<2x2x1xf32>) {
    %0 = stablehlo.slice %arg0 [0:0, 0:1, 0:1] : (tensor<2x1x1xf32>) -> tensor<0x1x1xf32>
    %1 = stablehlo.slice %arg0 [0:2, 0:1, 0:1] : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<0x2x1xf32>
    %3 = stablehlo.slice %1 [0:1, 0:1, 0:1] : (tensor<2x1x1xf32>) -> tensor<1x1x1xf32>
    %4 = stablehlo.reshape %3 : (tensor<1x1x1xf32>) -> tensor<1x1xf32>
    %5:2 = call @closed_call_0(%arg1, %4) : (tensor<2x1xf32>, tensor<1x1xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>)
    %6 = stablehlo.slice %1 [1:2, 0:1, 0:1] : (tensor<2x1x1xf32>) -> tensor<1x1x1xf32>
    %7 = stablehlo.reshape %6 : (tensor<1x1x1xf32>) -> tensor<1x1xf32>
    %8:2 = call @closed_call_0(%5#0, %7) : (tensor<2x1xf32>, tensor<1x1xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>)
    %9 = stablehlo.broadcast_in_dim %5#1, dims = [1, 2] : (tensor<2x1xf32>) -> tensor<1x2x1xf32>
    %10 = stablehlo.broadcast_in_dim %8#1, dims = [1, 2] : (tensor<2x1xf32>) -> tensor<1x2x1xf32>
    %11 = stablehlo.concatenate %9, %10, dim = 0 : (tensor<1x2x1xf32>, tensor<1x2x1xf32>) -> tensor<2x2x1xf32>
    %12 = stablehlo.concatenate %2, %11, dim = 0 : (tensor<0x2x1xf32>, tensor<2x2x1xf32>) -> tensor<2x2x1xf32>
    return %8#0, %12 : tensor<2x1xf32>, tensor<2x2x1xf32>
  }
  func.func private @closed_call_0(%arg0: tensor<2x1xf32>, %arg1: tensor<1x1xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>) {
    %0 = stablehlo.custom_call @annotate_device_placement(%arg0) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<2x1xf32>) -> tensor<2x1xf32>
    %1 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x1xf32>, tensor<1x1xf32>) -> tensor<2x1xf32>
    return %1, %0 : tensor<2x1xf32>, tensor<2x1xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<2x2x2x1xf32>, %arg1: tensor<2x2x1xf32>, %arg2: tensor<i32>) -> tensor<2x2x2x1xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<2x2x1xf32>) -> tensor<1x2x2x1xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<2x2x2x1xf32>, tensor<1x2x2x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x2x2x1xf32>
    return %1 : tensor<2x2x2x1xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<2x2x2x1xf32>, %arg1: tensor<i32>) -> tensor<2x2x1xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 2, 2, 1] : (tensor<2x2x2x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x2x1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2x2x1xf32>) -> tensor<2x2x1xf32>
    return %1 : tensor<2x2x1xf32>
  }
  func.func private @closed_call_1(%arg0: tensor<2x1x1xf32>, %arg1: tensor<2x1x1xf32>, %arg2: tensor<2x1xf32>, %arg3: tensor<2x2x1xf32>) -> (tensor<2x1x1xf32>, tensor<2x1xf32>) {
    %0 = stablehlo.slice %arg3 [0:2, 0:2, 0:1] : (tensor<2x2x1xf32>) -> tensor<2x2x1xf32>
    %1 = stablehlo.slice %arg3 [2:2, 0:2, 0:1] : (tensor<2x2x1xf32>) -> tensor<0x2x1xf32>
    %2 = stablehlo.slice %arg0 [0:2, 0:1, 0:1] : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
    %3 = stablehlo.slice %arg0 [2:2, 0:1, 0:1] : (tensor<2x1x1xf32>) -> tensor<0x1x1xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<0x1x1xf32>
    %5 = stablehlo.slice %0 [1:2, 0:2, 0:1] : (tensor<2x2x1xf32>) -> tensor<1x2x1xf32>
    %6 = stablehlo.reshape %5 : (tensor<1x2x1xf32>) -> tensor<2x1xf32>
    %7 = stablehlo.slice %2 [1:2, 0:1, 0:1] : (tensor<2x1x1xf32>) -> tensor<1x1x1xf32>
    %8 = stablehlo.reshape %7 : (tensor<1x1x1xf32>) -> tensor<1x1xf32>
    %9:2 = call @closed_call_2(%arg2, %6, %8) : (tensor<2x1xf32>, tensor<2x1xf32>, tensor<1x1xf32>) -> (tensor<2x1xf32>, tensor<1x1xf32>)
    %10 = stablehlo.slice %0 [0:1, 0:2, 0:1] : (tensor<2x2x1xf32>) -> tensor<1x2x1xf32>
    %11 = stablehlo.reshape %10 : (tensor<1x2x1xf32>) -> tensor<2x1xf32>
    %12 = stablehlo.slice %2 [0:1, 0:1, 0:1] : (tensor<2x1x1xf32>) -> tensor<1x1x1xf32>
    %13 = stablehlo.reshape %12 : (tensor<1x1x1xf32>) -> tensor<1x1xf32>
    %14:2 = call @closed_call_2(%9#0, %11, %13) : (tensor<2x1xf32>, tensor<2x1xf32>, tensor<1x1xf32>) -> (tensor<2x1xf32>, tensor<1x1xf32>)
    %15 = stablehlo.broadcast_in_dim %14#1, dims = [1, 2] : (tensor<1x1xf32>) -> tensor<1x1x1xf32>
    %16 = stablehlo.broadcast_in_dim %9#1, dims = [1, 2] : (tensor<1x1xf32>) -> tensor<1x1x1xf32>
    %17 = stablehlo.concatenate %15, %16, dim = 0 : (tensor<1x1x1xf32>, tensor<1x1x1xf32>) -> tensor<2x1x1xf32>
    %18 = stablehlo.concatenate %17, %4, dim = 0 : (tensor<2x1x1xf32>, tensor<0x1x1xf32>) -> tensor<2x1x1xf32>
    %19 = stablehlo.add %arg1, %18 : tensor<2x1x1xf32>
    return %19, %14#0 : tensor<2x1x1xf32>, tensor<2x1xf32>
  }
  func.func private @closed_call_2(%arg0: tensor<2x1xf32>, %arg1: tensor<2x1xf32>, %arg2: tensor<1x1xf32>) -> (tensor<2x1xf32>, tensor<1x1xf32>) {
    %0:3 = stablehlo.optimization_barrier %arg1, %arg2, %arg0 : tensor<2x1xf32>, tensor<1x1xf32>, tensor<2x1xf32>
    %1 = stablehlo.custom_call @annotate_device_placement(%0#0) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<2x1xf32>) -> tensor<2x1xf32>
    %2 = stablehlo.dot_general %0#2, %1, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<1x1xf32>
    %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<1x1xf32>) -> tensor<1x1xf32>
    %4 = stablehlo.dot_general %0#2, %0#1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x1xf32>, tensor<1x1xf32>) -> tensor<2x1xf32>
    return %4, %3 : tensor<2x1xf32>, tensor<1x1xf32>
  }
}
