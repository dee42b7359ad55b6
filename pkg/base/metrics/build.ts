import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

/** Shows in `registry` what runs; nothing of it changes while the process lives. */
export function buildInfo(registry: Registry, { version, program }: { version: string; program: string }): void {
  declaring(registry)
    .gauge('machinist_build_info', ['version', 'program', 'nodejs'])
    .help('Name and version of this program, and the version of Node.js; the value is always 1.')
    .set({ version, program, nodejs: process.versions.node }, 1);
}
