module @module attributes {} {
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
    %25, %26 = "stablehlo.while"(%3, %1) ({
    ^bb0(%14: tensor<i32>, %15: tensor<f32>):
      %16 = "stablehlo.compare"(%14, %12) {compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> (tensor<i1>)
      "stablehlo.return"(%16) : (tensor<i1>) -> ()
    }, {
    ^bb0(%17: tensor<i32>, %18: tensor<f32>):
      %19 = "stablehlo.dynamic_slice"(%13, %17, %3) {slice_sizes = array<i64: 1, 2>} : (tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> (tensor<1x2xf32>)
      %20 = "stablehlo.reshape"(%19) : (tensor<1x2xf32>) -> (tensor<2xf32>)
      %21 = "stablehlo.dynamic_slice"(%20, %3) {slice_sizes = array<i64: 1>} : (tensor<2xf32>, tensor<i32>) -> (tensor<1xf32>)
      %22 = "stablehlo.reshape"(%21) : (tensor<1xf32>) -> (tensor<f32>)
      %23 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> (tensor<i32>)
      %24 = "stablehlo.add"(%17, %23) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
      "stablehlo.return"(%24, %22) : (tensor<i32>, tensor<f32>) -> ()
    }) : (tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>)
    "func.return"(%26) : (tensor<f32>) -> ()
  }) {sym_name = "main", function_type = (tensor<2x2xf32>) -> (tensor<f32>), arg_attrs = [{mhlo.memory_kind = "pinned_host"}], sym_visibility = "public"} : () -> ()
}
