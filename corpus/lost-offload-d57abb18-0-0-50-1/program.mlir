module @jit_loss attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @empty_mesh = <[]> {stablehlo.mesh = {axes = []}}
  func.func public @main(%arg0: tensor<5x26x26xf32> {mhlo.memory_kind = "device", sdy.sharding = #sdy.sharding<@empty_mesh, [{}, {}, {}]>}) -> (tensor<5x26x26xf32> {jax.result_info = "result", mhlo.memory_kind = "device"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x26xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x5x1x26xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %2:4 = stablehlo.while(%iterArg = %arg0, %iterArg_4 = %c, %iterArg_5 = %0, %iterArg_6 = %1) : tensor<5x26x26xf32>, tensor<i32>, tensor<1x26xf32>, tensor<2x5x1x26xf32>
    cond {
      %c_7 = stablehlo.constant dense<2> : tensor<i32>
      %6 = stablehlo.compare LT, %iterArg_4, %c_7, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %6:2 = func.call @closed_call(%iterArg, %iterArg_5) : (tensor<5x26x26xf32>, tensor<1x26xf32>) -> (tensor<1x26xf32>, tensor<5x1x26xf32>)
      %7 = func.call @dynamic_update_index_in_dim_1(%iterArg_6, %6#1, %iterArg_4) : (tensor<2x5x1x26xf32>, tensor<5x1x26xf32>, tensor<i32>) -> tensor<2x5x1x26xf32>
      %c_7 = stablehlo.constant dense<1> : tensor<i32>
      %8 = stablehlo.add %iterArg_4, %c_7 : tensor<i32>
      stablehlo.return %iterArg, %8, %6#0, %7 : tensor<5x26x26xf32>, tensor<i32>, tensor<1x26xf32>, tensor<2x5x1x26xf32>
    }
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x26xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<5x26x26xf32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %5:5 = stablehlo.while(%iterArg = %2#3, %iterArg_4 = %arg0, %iterArg_5 = %c_3, %iterArg_6 = %4, %iterArg_7 = %3) : tensor<2x5x1x26xf32>, tensor<5x26x26xf32>, tensor<i32>, tensor<5x26x26xf32>, tensor<1x26xf32>
    cond {
      %c_8 = stablehlo.constant dense<2> : tensor<i32>
      %6 = stablehlo.compare LT, %iterArg_5, %c_8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %c_8 = stablehlo.constant dense<2> : tensor<i32>
      %6 = stablehlo.subtract %c_8, %iterArg_5 : tensor<i32>
      %c_9 = stablehlo.constant dense<1> : tensor<i32>
      %7 = stablehlo.subtract %6, %c_9 : tensor<i32>
      %8 = func.call @dynamic_index_in_dim_2(%iterArg, %7) : (tensor<2x5x1x26xf32>, tensor<i32>) -> tensor<5x1x26xf32>
      %9:2 = func.call @closed_call_3(%iterArg_4, %iterArg_6, %iterArg_7, %8) : (tensor<5x26x26xf32>, tensor<5x26x26xf32>, tensor<1x26xf32>, tensor<5x1x26xf32>) -> (tensor<5x26x26xf32>, tensor<1x26xf32>)
      %c_10 = stablehlo.constant dense<1> : tensor<i32>
      %10 = stablehlo.add %iterArg_5, %c_10 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_4, %10, %9#0, %9#1 : tensor<2x5x1x26xf32>, tensor<5x26x26xf32>, tensor<i32>, tensor<5x26x26xf32>, tensor<1x26xf32>
    }
    return %5#3 : tensor<5x26x26xf32>
  }
  func.func private @closed_call(%arg0: tensor<5x26x26xf32>, %arg1: tensor<1x26xf32>) -> (tensor<1x26xf32>, tensor<5x1x26xf32>) {
    %0 = stablehlo.slice %arg0 [0:3, 0:26, 0:26] : (tensor<5x26x26xf32>) -> tensor<3x26x26xf32>
    %1 = stablehlo.slice %arg0 [3:5, 0:26, 0:26] : (tensor<5x26x26xf32>) -> tensor<2x26x26xf32>
    %2 = stablehlo.reshape %0 : (tensor<3x26x26xf32>) -> tensor<1x3x26x26xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x3x1x26xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %4:4 = stablehlo.while(%iterArg = %2, %iterArg_0 = %c, %iterArg_1 = %arg1, %iterArg_2 = %3) : tensor<1x3x26x26xf32>, tensor<i32>, tensor<1x26xf32>, tensor<1x3x1x26xf32>
    cond {
      %c_3 = stablehlo.constant dense<1> : tensor<i32>
      %16 = stablehlo.compare LT, %iterArg_0, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %16 : tensor<i1>
    } do {
      %16 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_0) : (tensor<1x3x26x26xf32>, tensor<i32>) -> tensor<3x26x26xf32>
      %17 = stablehlo.slice %16 [0:1, 0:26, 0:26] : (tensor<3x26x26xf32>) -> tensor<1x26x26xf32>
      %18 = stablehlo.reshape %17 : (tensor<1x26x26xf32>) -> tensor<26x26xf32>
      %19:2 = func.call @closed_call_0(%iterArg_1, %18) : (tensor<1x26xf32>, tensor<26x26xf32>) -> (tensor<1x26xf32>, tensor<1x26xf32>)
      %20 = stablehlo.slice %16 [1:2, 0:26, 0:26] : (tensor<3x26x26xf32>) -> tensor<1x26x26xf32>
      %21 = stablehlo.reshape %20 : (tensor<1x26x26xf32>) -> tensor<26x26xf32>
      %22:2 = func.call @closed_call_0(%19#0, %21) : (tensor<1x26xf32>, tensor<26x26xf32>) -> (tensor<1x26xf32>, tensor<1x26xf32>)
      %23 = stablehlo.slice %16 [2:3, 0:26, 0:26] : (tensor<3x26x26xf32>) -> tensor<1x26x26xf32>
      %24 = stablehlo.reshape %23 : (tensor<1x26x26xf32>) -> tensor<26x26xf32>
      %25:2 = func.call @closed_call_0(%22#0, %24) : (tensor<1x26xf32>, tensor<26x26xf32>) -> (tensor<1x26xf32>, tensor<1x26xf32>)
      %26 = stablehlo.broadcast_in_dim %19#1, dims = [1, 2] : (tensor<1x26xf32>) -> tensor<1x1x26xf32>
      %27 = stablehlo.broadcast_in_dim %22#1, dims = [1, 2] : (tensor<1x26xf32>) -> tensor<1x1x26xf32>
      %28 = stablehlo.broadcast_in_dim %25#1, dims = [1, 2] : (tensor<1x26xf32>) -> tensor<1x1x26xf32>
      %29 = stablehlo.concatenate %26, %27, %28, dim = 0 : (tensor<1x1x26xf32>, tensor<1x1x26xf32>, tensor<1x1x26xf32>) -> tensor<3x1x26xf32>
      %30 = func.call @dynamic_update_index_in_dim(%iterArg_2, %29, %iterArg_0) : (tensor<1x3x1x26xf32>, tensor<3x1x26xf32>, tensor<i32>) -> tensor<1x3x1x26xf32>
      %c_3 = stablehlo.constant dense<1> : tensor<i32>
      %31 = stablehlo.add %iterArg_0, %c_3 : tensor<i32>
      stablehlo.return %iterArg, %31, %25#0, %30 : tensor<1x3x26x26xf32>, tensor<i32>, tensor<1x26xf32>, tensor<1x3x1x26xf32>
    }
    %5 = stablehlo.reshape %4#3 : (tensor<1x3x1x26xf32>) -> tensor<3x1x26xf32>
    %6 = stablehlo.slice %1 [0:1, 0:26, 0:26] : (tensor<2x26x26xf32>) -> tensor<1x26x26xf32>
    %7 = stablehlo.reshape %6 : (tensor<1x26x26xf32>) -> tensor<26x26xf32>
    %8:2 = call @closed_call_0(%4#2, %7) : (tensor<1x26xf32>, tensor<26x26xf32>) -> (tensor<1x26xf32>, tensor<1x26xf32>)
    %9 = stablehlo.slice %1 [1:2, 0:26, 0:26] : (tensor<2x26x26xf32>) -> tensor<1x26x26xf32>
    %10 = stablehlo.reshape %9 : (tensor<1x26x26xf32>) -> tensor<26x26xf32>
    %11:2 = call @closed_call_0(%8#0, %10) : (tensor<1x26xf32>, tensor<26x26xf32>) -> (tensor<1x26xf32>, tensor<1x26xf32>)
    %12 = stablehlo.broadcast_in_dim %8#1, dims = [1, 2] : (tensor<1x26xf32>) -> tensor<1x1x26xf32>
    %13 = stablehlo.broadcast_in_dim %11#1, dims = [1, 2] : (tensor<1x26xf32>) -> tensor<1x1x26xf32>
    %14 = stablehlo.concatenate %12, %13, dim = 0 : (tensor<1x1x26xf32>, tensor<1x1x26xf32>) -> tensor<2x1x26xf32>
    %15 = stablehlo.concatenate %5, %14, dim = 0 : (tensor<3x1x26xf32>, tensor<2x1x26xf32>) -> tensor<5x1x26xf32>
    return %11#0, %15 : tensor<1x26xf32>, tensor<5x1x26xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<1x3x26x26xf32>, %arg1: tensor<i32>) -> tensor<3x26x26xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 3, 26, 26] : (tensor<1x3x26x26xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x26x26xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x26x26xf32>) -> tensor<3x26x26xf32>
    return %1 : tensor<3x26x26xf32>
  }
  func.func private @closed_call_0(%arg0: tensor<1x26xf32>, %arg1: tensor<26x26xf32>) -> (tensor<1x26xf32>, tensor<1x26xf32>) {
    %0 = stablehlo.custom_call @annotate_device_placement(%arg0) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<1x26xf32>) -> tensor<1x26xf32>
    %1 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x26xf32>, tensor<26x26xf32>) -> tensor<1x26xf32>
    return %1, %0 : tensor<1x26xf32>, tensor<1x26xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<1x3x1x26xf32>, %arg1: tensor<3x1x26xf32>, %arg2: tensor<i32>) -> tensor<1x3x1x26xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<3x1x26xf32>) -> tensor<1x3x1x26xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<1x3x1x26xf32>, tensor<1x3x1x26xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x1x26xf32>
    return %1 : tensor<1x3x1x26xf32>
  }
  func.func private @dynamic_update_index_in_dim_1(%arg0: tensor<2x5x1x26xf32>, %arg1: tensor<5x1x26xf32>, %arg2: tensor<i32>) -> tensor<2x5x1x26xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<5x1x26xf32>) -> tensor<1x5x1x26xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<2x5x1x26xf32>, tensor<1x5x1x26xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x5x1x26xf32>
    return %1 : tensor<2x5x1x26xf32>
  }
  func.func private @dynamic_index_in_dim_2(%arg0: tensor<2x5x1x26xf32>, %arg1: tensor<i32>) -> tensor<5x1x26xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 5, 1, 26] : (tensor<2x5x1x26xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x5x1x26xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x5x1x26xf32>) -> tensor<5x1x26xf32>
    return %1 : tensor<5x1x26xf32>
  }
  func.func private @closed_call_3(%arg0: tensor<5x26x26xf32>, %arg1: tensor<5x26x26xf32>, %arg2: tensor<1x26xf32>, %arg3: tensor<5x1x26xf32>) -> (tensor<5x26x26xf32>, tensor<1x26xf32>) {
    %0 = stablehlo.slice %arg3 [0:2, 0:1, 0:26] : (tensor<5x1x26xf32>) -> tensor<2x1x26xf32>
    %1 = stablehlo.slice %arg3 [2:5, 0:1, 0:26] : (tensor<5x1x26xf32>) -> tensor<3x1x26xf32>
    %2 = stablehlo.slice %arg0 [0:2, 0:26, 0:26] : (tensor<5x26x26xf32>) -> tensor<2x26x26xf32>
    %3 = stablehlo.slice %arg0 [2:5, 0:26, 0:26] : (tensor<5x26x26xf32>) -> tensor<3x26x26xf32>
    %4 = stablehlo.reshape %1 : (tensor<3x1x26xf32>) -> tensor<1x3x1x26xf32>
    %5 = stablehlo.reshape %3 : (tensor<3x26x26xf32>) -> tensor<1x3x26x26xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x3x26x26xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %7:5 = stablehlo.while(%iterArg = %4, %iterArg_0 = %5, %iterArg_1 = %c, %iterArg_2 = %arg2, %iterArg_3 = %6) : tensor<1x3x1x26xf32>, tensor<1x3x26x26xf32>, tensor<i32>, tensor<1x26xf32>, tensor<1x3x26x26xf32>
    cond {
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %24 = stablehlo.compare LT, %iterArg_1, %c_4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %24 : tensor<i1>
    } do {
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %24 = stablehlo.subtract %c_4, %iterArg_1 : tensor<i32>
      %c_5 = stablehlo.constant dense<1> : tensor<i32>
      %25 = stablehlo.subtract %24, %c_5 : tensor<i32>
      %26 = func.call @dynamic_index_in_dim_4(%iterArg, %25) : (tensor<1x3x1x26xf32>, tensor<i32>) -> tensor<3x1x26xf32>
      %27 = func.call @dynamic_index_in_dim(%iterArg_0, %25) : (tensor<1x3x26x26xf32>, tensor<i32>) -> tensor<3x26x26xf32>
      %28 = stablehlo.slice %26 [2:3, 0:1, 0:26] : (tensor<3x1x26xf32>) -> tensor<1x1x26xf32>
      %29 = stablehlo.reshape %28 : (tensor<1x1x26xf32>) -> tensor<1x26xf32>
      %30 = stablehlo.slice %27 [2:3, 0:26, 0:26] : (tensor<3x26x26xf32>) -> tensor<1x26x26xf32>
      %31 = stablehlo.reshape %30 : (tensor<1x26x26xf32>) -> tensor<26x26xf32>
      %32:2 = func.call @closed_call_5(%iterArg_2, %29, %31) : (tensor<1x26xf32>, tensor<1x26xf32>, tensor<26x26xf32>) -> (tensor<1x26xf32>, tensor<26x26xf32>)
      %33 = stablehlo.slice %26 [1:2, 0:1, 0:26] : (tensor<3x1x26xf32>) -> tensor<1x1x26xf32>
      %34 = stablehlo.reshape %33 : (tensor<1x1x26xf32>) -> tensor<1x26xf32>
      %35 = stablehlo.slice %27 [1:2, 0:26, 0:26] : (tensor<3x26x26xf32>) -> tensor<1x26x26xf32>
      %36 = stablehlo.reshape %35 : (tensor<1x26x26xf32>) -> tensor<26x26xf32>
      %37:2 = func.call @closed_call_5(%32#0, %34, %36) : (tensor<1x26xf32>, tensor<1x26xf32>, tensor<26x26xf32>) -> (tensor<1x26xf32>, tensor<26x26xf32>)
      %38 = stablehlo.slice %26 [0:1, 0:1, 0:26] : (tensor<3x1x26xf32>) -> tensor<1x1x26xf32>
      %39 = stablehlo.reshape %38 : (tensor<1x1x26xf32>) -> tensor<1x26xf32>
      %40 = stablehlo.slice %27 [0:1, 0:26, 0:26] : (tensor<3x26x26xf32>) -> tensor<1x26x26xf32>
      %41 = stablehlo.reshape %40 : (tensor<1x26x26xf32>) -> tensor<26x26xf32>
      %42:2 = func.call @closed_call_5(%37#0, %39, %41) : (tensor<1x26xf32>, tensor<1x26xf32>, tensor<26x26xf32>) -> (tensor<1x26xf32>, tensor<26x26xf32>)
      %43 = stablehlo.broadcast_in_dim %42#1, dims = [1, 2] : (tensor<26x26xf32>) -> tensor<1x26x26xf32>
      %44 = stablehlo.broadcast_in_dim %37#1, dims = [1, 2] : (tensor<26x26xf32>) -> tensor<1x26x26xf32>
      %45 = stablehlo.broadcast_in_dim %32#1, dims = [1, 2] : (tensor<26x26xf32>) -> tensor<1x26x26xf32>
      %46 = stablehlo.concatenate %43, %44, %45, dim = 0 : (tensor<1x26x26xf32>, tensor<1x26x26xf32>, tensor<1x26x26xf32>) -> tensor<3x26x26xf32>
      %47 = func.call @dynamic_update_index_in_dim_6(%iterArg_3, %46, %25) : (tensor<1x3x26x26xf32>, tensor<3x26x26xf32>, tensor<i32>) -> tensor<1x3x26x26xf32>
      %c_6 = stablehlo.constant dense<1> : tensor<i32>
      %48 = stablehlo.add %iterArg_1, %c_6 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_0, %48, %42#0, %47 : tensor<1x3x1x26xf32>, tensor<1x3x26x26xf32>, tensor<i32>, tensor<1x26xf32>, tensor<1x3x26x26xf32>
    }
    %8 = stablehlo.reshape %7#4 : (tensor<1x3x26x26xf32>) -> tensor<3x26x26xf32>
    %9 = stablehlo.slice %0 [1:2, 0:1, 0:26] : (tensor<2x1x26xf32>) -> tensor<1x1x26xf32>
    %10 = stablehlo.reshape %9 : (tensor<1x1x26xf32>) -> tensor<1x26xf32>
    %11 = stablehlo.slice %2 [1:2, 0:26, 0:26] : (tensor<2x26x26xf32>) -> tensor<1x26x26xf32>
    %12 = stablehlo.reshape %11 : (tensor<1x26x26xf32>) -> tensor<26x26xf32>
    %13:2 = call @closed_call_5(%7#3, %10, %12) : (tensor<1x26xf32>, tensor<1x26xf32>, tensor<26x26xf32>) -> (tensor<1x26xf32>, tensor<26x26xf32>)
    %14 = stablehlo.slice %0 [0:1, 0:1, 0:26] : (tensor<2x1x26xf32>) -> tensor<1x1x26xf32>
    %15 = stablehlo.reshape %14 : (tensor<1x1x26xf32>) -> tensor<1x26xf32>
    %16 = stablehlo.slice %2 [0:1, 0:26, 0:26] : (tensor<2x26x26xf32>) -> tensor<1x26x26xf32>
    %17 = stablehlo.reshape %16 : (tensor<1x26x26xf32>) -> tensor<26x26xf32>
    %18:2 = call @closed_call_5(%13#0, %15, %17) : (tensor<1x26xf32>, tensor<1x26xf32>, tensor<26x26xf32>) -> (tensor<1x26xf32>, tensor<26x26xf32>)
    %19 = stablehlo.broadcast_in_dim %18#1, dims = [1, 2] : (tensor<26x26xf32>) -> tensor<1x26x26xf32>
    %20 = stablehlo.broadcast_in_dim %13#1, dims = [1, 2] : (tensor<26x26xf32>) -> tensor<1x26x26xf32>
    %21 = stablehlo.concatenate %19, %20, dim = 0 : (tensor<1x26x26xf32>, tensor<1x26x26xf32>) -> tensor<2x26x26xf32>
    %22 = stablehlo.concatenate %21, %8, dim = 0 : (tensor<2x26x26xf32>, tensor<3x26x26xf32>) -> tensor<5x26x26xf32>
    %23 = stablehlo.add %arg1, %22 : tensor<5x26x26xf32>
    return %23, %18#0 : tensor<5x26x26xf32>, tensor<1x26xf32>
  }
  func.func private @dynamic_index_in_dim_4(%arg0: tensor<1x3x1x26xf32>, %arg1: tensor<i32>) -> tensor<3x1x26xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 3, 1, 26] : (tensor<1x3x1x26xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x1x26xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x1x26xf32>) -> tensor<3x1x26xf32>
    return %1 : tensor<3x1x26xf32>
  }
  func.func private @closed_call_5(%arg0: tensor<1x26xf32>, %arg1: tensor<1x26xf32>, %arg2: tensor<26x26xf32>) -> (tensor<1x26xf32>, tensor<26x26xf32>) {
    %0:3 = stablehlo.optimization_barrier %arg1, %arg2, %arg0 : tensor<1x26xf32>, tensor<26x26xf32>, tensor<1x26xf32>
    %1 = stablehlo.custom_call @annotate_device_placement(%0#0) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<1x26xf32>) -> tensor<1x26xf32>
    %2 = stablehlo.dot_general %0#2, %1, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x26xf32>, tensor<1x26xf32>) -> tensor<26x26xf32>
    %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<26x26xf32>) -> tensor<26x26xf32>
    %4 = stablehlo.dot_general %0#2, %0#1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x26xf32>, tensor<26x26xf32>) -> tensor<1x26xf32>
    return %4, %3 : tensor<1x26xf32>, tensor<26x26xf32>
  }
  func.func private @dynamic_update_index_in_dim_6(%arg0: tensor<1x3x26x26xf32>, %arg1: tensor<3x26x26xf32>, %arg2: tensor<i32>) -> tensor<1x3x26x26xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<3x26x26xf32>) -> tensor<1x3x26x26xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<1x3x26x26xf32>, tensor<1x3x26x26xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x26x26xf32>
    return %1 : tensor<1x3x26x26xf32>
  }
}
