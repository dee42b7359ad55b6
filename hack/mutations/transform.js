import path from 'node:path';

import stripTypes from '../jest-strip-types.js';
import { apply } from './tree/edit.ts';
import { withEnds } from './tree/loops.ts';

/**
 * Jest transformer: as for all tests, but the source of one file is read with a change in it. The files themselves stay as
 * they are, so that one jest can run many mutants side by side.
 */
export default {
  createTransformer: ({ change }) => {
    const changed = (source, file, { config }) =>
      change !== undefined && file === path.join(config.rootDir, change.file)
        ? withEnds(change.file, apply(source, change.edit))
        : source;
    return {
      process: (source, file, options) => stripTypes.process(changed(source, file, options)),
      getCacheKey: (source, file, options) => stripTypes.getCacheKey(changed(source, file, options), file),
    };
  },
};
