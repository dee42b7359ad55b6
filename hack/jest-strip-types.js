import { createHash } from 'node:crypto';
import { stripTypeScriptTypes } from 'node:module';
import vm from 'node:vm';

import { compileOnce } from './test/compiled-once.ts';
import { formatNatively } from './test/native-stacks.ts';

// Jest loads this beside its own loader, before any test file.
compileOnce(vm);
formatNatively(Error);

/** Jest transformer: Node's own type stripping, so that tests run the bytes that Node runs. */
export default {
  process: (source) => ({ code: stripTypeScriptTypes(source, { mode: 'strip' }) }),
  getCacheKey: (source, path) => createHash('sha256').update(process.version).update(path).update(source).digest('hex'),
};
