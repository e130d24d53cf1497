// _attention_results: behind the loop over blocks of keys, stores y over the sum of its weights.

    // The invocations of a row have a part of its sum of weights each.
    $$ for i in range(per_rows)
    shared_tops[row{{ i }}][tx] = total{{ i }};
    $$ endfor
    workgroupBarrier();
    $$ for i in range(per_rows)
    {
        let row = first_row + row{{ i }};
        var whole = 0.0;
        for (var t = 0u; t < TX; t++) { whole += shared_tops[row{{ i }}][t]; }
        let at_y = batch * params.y_batch + head * params.y_head + row * params.y_row;
        $$ for j in range(per_values)
        if (row < params.queries && tx + {{ j }}u * TX < E4) {
            $$ if clear_nan
            var result = vec4<f32>();
            if (whole > 0.0) { result = y{{ i }}_{{ j }} / whole; }
            $$ else
            let result = y{{ i }}_{{ j }} / whole;
            $$ endif
            $$ if quads
            store4_y(at_y / 4u + tx + {{ j }}u * TX, result);
            $$ else
            let e = 4u * (tx + {{ j }}u * TX);
            for (var c = 0u; c < min(4u, params.e - e); c++) { store_y(at_y + e + c, result[c]); }
            $$ endif
        }
        $$ endfor
    }
    $$ endfor
