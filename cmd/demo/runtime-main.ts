import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { IriRuntime } from '../../packages/providers/iri/runtime.ts';

/** A runtime of IronCore, as a program of its own that can be halted and killed. Its machines are lost with it. */
const { values } = parseArgs({
  options: {
    socket: { type: 'string', default: '' },
    /** Of the one class that it has. */
    class: { type: 'string', default: '' },
    room: { type: 'string', default: '0' },
    'pid-file': { type: 'string', default: '' },
  },
});
await IriRuntime.start({ socket: values.socket, classes: { [values.class]: Number(values.room) } });
writeFileSync(values['pid-file'], `${process.pid}\n`);
