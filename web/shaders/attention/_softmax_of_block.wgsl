// _softmax_of_block: inside a loop over blocks of keys, from the logits s of an invocation, without the mask, to
// weights in `block_p`; `total` and y, what is summed so far, shrink where the block brings a larger logit.
//
//   Needs: `first`, the block's first key, and `keys`, the number of all, or with `cached` `end` of each row.

        $$ if capped
        $$ for i in range(per_rows)
        $$ for j in range(quads_keys)
        s{{ i }}_{{ j }} = soft_capped(s{{ i }}_{{ j }});
        $$ endfor
        $$ endfor
        $$ endif
        $$ if masked
        $$ for i in range(per_rows)
        $$ for j in range(quads_keys)
        s{{ i }}_{{ j }} += {{ "m%d_%d" % (i, j) if skips else "mask_quad(at_mask%d, first + 4u * (tx + %du * TX))" % (i, j) }};
        $$ endfor
        $$ endfor
        $$ endif

        // The largest logit of each row. Keys behind the last one count as hidden.
        $$ for j in range(quads_keys)
        let key{{ j }} = vec4<u32>(first + 4u * (tx + {{ j }}u * TX)) + vec4<u32>(0u, 1u, 2u, 3u);
        $$ endfor
        $$ for i in range(per_rows)
        $$ for j in range(quads_keys)
        let seen{{ i }}_{{ j }} = key{{ j }} < vec4<u32>({{ "end" ~ i if cached else "keys" }});
        $$ endfor
        var own{{ i }} = LOWEST;
        $$ for j in range(quads_keys)
        {
            let s = select(vec4<f32>(LOWEST), s{{ i }}_{{ j }}, seen{{ i }}_{{ j }});
            own{{ i }} = larger(own{{ i }}, larger(larger(s.x, s.y), larger(s.z, s.w)));
        }
        $$ endfor
        shared_tops[row{{ i }}][tx] = own{{ i }};
        $$ endfor
        workgroupBarrier();

        // Weights.
        $$ for i in range(per_rows)
        {
            var most = top{{ i }};
            $$ for t in range(tx)
            most = larger(most, shared_tops[row{{ i }}][{{ t }}]);
            $$ endfor
            let shrink = exp(top{{ i }} - most);
            top{{ i }} = most;
            total{{ i }} *= shrink;
            $$ for j in range(per_values)
            y{{ i }}_{{ j }} *= shrink;
            $$ endfor
            $$ for j in range(quads_keys)
            {
                let p = select(vec4<f32>(), exp(s{{ i }}_{{ j }} - most), seen{{ i }}_{{ j }});
                total{{ i }} += p.x + p.y + p.z + p.w;
                block_p[row{{ i }}][tx + {{ j }}u * TX] = p;
            }
            $$ endfor
        }
        $$ endfor
