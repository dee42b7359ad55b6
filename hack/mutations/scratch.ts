import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** What is not source. */
const LEFT_OUT: ReadonlySet<string> = new Set(['.git', 'node_modules', 'dist', '.demo', '.cache', 'coverage']);

/** A copy of a checkout, with the same packages; it is gone once disposed. */
export class Scratch implements Disposable {
  readonly root: string;

  constructor(checkout: string) {
    this.root = mkdtempSync(path.join(tmpdir(), 'machinist-mutations-'));
    const isSource = (source: string): boolean => !LEFT_OUT.has(path.relative(checkout, source));
    cpSync(checkout, this.root, { recursive: true, filter: isSource });
    symlinkSync(path.join(checkout, 'node_modules'), path.join(this.root, 'node_modules'));
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
