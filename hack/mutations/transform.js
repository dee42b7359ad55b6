import path from 'node:path';

import stripTypes from '../jest-strip-types.js';
import { mutate } from './mutation.ts';

/**
 * Jest transformer: as for all tests, but the source of one file is read with a mutation in it. The files themselves stay as
 * they are, so that one jest can run many mutations side by side.
 */
export default {
  createTransformer: ({ mutation }) => {
    const mutated = (source, file, { config }) =>
      mutation !== undefined && file === path.join(config.rootDir, mutation.file) ? mutate(source, mutation) : source;
    return {
      process: (source, file, options) => stripTypes.process(mutated(source, file, options)),
      getCacheKey: (source, file, options) => stripTypes.getCacheKey(mutated(source, file, options), file),
    };
  },
};
