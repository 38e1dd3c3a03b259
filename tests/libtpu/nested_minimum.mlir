module @module attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  "func.func"() ({
  ^bb0(%0: tensor<2x2xf32>):
    %1 = "stablehlo.constant"() {value = dense<0.000000e+00> : tensor<f32>} : () -> (tensor<f32>)
    %2 = "stablehlo.constant"() {value = dense<0.000000e+00> : tensor<2x2xf32>} : () -> (tensor<2x2xf32>)
    %3 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %12, %13 = "stablehlo.while"(%3, %2) ({
    ^bb0(%4: tensor<i32>, %5: tensor<2x2xf32>):
      %6 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> (tensor<i32>)
      %7 = "stablehlo.compare"(%4, %6) {compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> (tensor<i1>)
      "stablehlo.return"(%7) : (tensor<i1>) -> ()
    }, {
    ^bb0(%8: tensor<i32>, %9: tensor<2x2xf32>):
      %10 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> (tensor<i32>)
      %11 = "stablehlo.add"(%8, %10) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
      "stablehlo.return"(%11, %0) : (tensor<i32>, tensor<2x2xf32>) -> ()
    }) : (tensor<i32>, tensor<2x2xf32>) -> (tensor<i32>, tensor<2x2xf32>)
    %14 = "stablehlo.dynamic_slice"(%13, %3, %3) {slice_sizes = array<i64: 1, 2>} : (tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> (tensor<1x2xf32>)
    %15 = "stablehlo.reshape"(%14) : (tensor<1x2xf32>) -> (tensor<2xf32>)
    %26, %27 = "stablehlo.while"(%3, %1) ({
    ^bb0(%16: tensor<i32>, %17: tensor<f32>):
      %18 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> (tensor<i32>)
      %19 = "stablehlo.compare"(%16, %18) {compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> (tensor<i1>)
      "stablehlo.return"(%19) : (tensor<i1>) -> ()
    }, {
    ^bb0(%20: tensor<i32>, %21: tensor<f32>):
      %22 = "stablehlo.dynamic_slice"(%15, %20) {slice_sizes = array<i64: 1>} : (tensor<2xf32>, tensor<i32>) -> (tensor<1xf32>)
      %23 = "stablehlo.reshape"(%22) : (tensor<1xf32>) -> (tensor<f32>)
      %24 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> (tensor<i32>)
      %25 = "stablehlo.add"(%20, %24) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
      "stablehlo.return"(%25, %23) : (tensor<i32>, tensor<f32>) -> ()
    }) : (tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>)
    "func.return"(%27) : (tensor<f32>) -> ()
  }) {sym_name = "main", function_type = (tensor<2x2xf32>) -> (tensor<f32>), arg_attrs = [{mhlo.memory_kind = "pinned_host"}], sym_visibility = "public"} : () -> ()
}
