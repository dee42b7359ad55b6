import { readFile } from 'node:fs/promises';
import path from 'node:path';

import { MACHINE_EVENTS } from '../../pkg/controllers/machine-facts/events.ts';
import { ORPHAN_EVENTS } from '../../pkg/controllers/safety/orphan-vms/events.ts';
import { CELL_EVENTS } from '../../pkg/operator/cells/events.ts';
import { memberComments } from './comments.ts';
import { table } from './table.ts';

const PAGE = path.resolve(import.meta.dirname, '../../docs/reference/events.md');

/** Tables whose rows are those of a constant, by heading. The others are of Events that functions make, and are kept by hand. */
const TABLES = {
  Machines: { events: MACHINE_EVENTS, file: 'pkg/controllers/machine-facts/events.ts', constant: 'MACHINE_EVENTS' },
  'MachineClasses: VMs without a Machine': {
    events: ORPHAN_EVENTS,
    file: 'pkg/controllers/safety/orphan-vms/events.ts',
    constant: 'ORPHAN_EVENTS',
  },
  'Namespaces of cells': { events: CELL_EVENTS, file: 'pkg/operator/cells/events.ts', constant: 'CELL_EVENTS' },
} as const;

/** docs/reference/events.md with the rows of these tables. */
export async function eventsReference(): Promise<string> {
  let page = await readFile(PAGE, 'utf8');
  for (const [heading, { events, file, constant }] of Object.entries(TABLES)) {
    const comments = memberComments(file, constant);
    const rows = Object.entries(events).map(([reason, type]) => {
      const [when = '', remedy = ''] = (comments.get(reason) ?? '').split(' → ');
      return [reason, type, when, remedy];
    });
    page = withTable(page, heading, await table(['reason', 'type', 'when', 'what to do'], rows));
  }
  return page;
}

/** The page with another first table under a heading. */
function withTable(page: string, heading: string, rows: string): string {
  const start = page.indexOf(`\n## ${heading}\n`);
  const [, before = '', after = ''] = /^([^]*?\n\n)(?:\|[^\n]*\n)+([^]*)$/.exec(page.slice(start)) ?? [];
  if (start < 0 || before === '') throw new Error(`docs/reference/events.md has no table under "${heading}"`);
  return page.slice(0, start) + before + rows + after;
}
