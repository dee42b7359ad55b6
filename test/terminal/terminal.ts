import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

import xterm from '@xterm/headless';

import { resolveProgram } from '../../hack/control-plane/binaries.ts';
import type { Cell } from '../../hack/picture/svg.ts';
import { eventually } from '../expect/eventually.ts';

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** A command in a real pseudo-terminal, and what a person sees there. Disposing kills it. */
export class Terminal implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #screen: InstanceType<typeof xterm.Terminal>;
  readonly #ended: Promise<unknown>;
  #written = Promise.resolve();
  #output = '';

  private constructor(child: ChildProcess, { columns, rows }: TerminalSize) {
    this.#child = child;
    this.#screen = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true });
    this.#ended = once(child, 'close');
    child.stdout?.on('data', (chunk: Buffer) => {
      this.#output += chunk.toString('latin1');
      this.#written = this.#written.then(() => new Promise((resolve) => this.#screen.write(chunk, resolve)));
    });
    child.stderr?.on('data', (chunk: Buffer) => (this.#output += chunk.toString('latin1')));
  }

  /** Starts a command with its arguments. */
  static async start(
    command: readonly string[],
    size: TerminalSize,
    env: Readonly<Record<string, string>> = {},
  ): Promise<Terminal> {
    const { path } = await resolveProgram('terminal');
    const child = spawn(path, [String(size.columns), String(size.rows), ...command], {
      env: { ...process.env, TERM: 'xterm-256color', NO_COLOR: '', ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    return new Terminal(child, size);
  }

  /** Everything that was written to the terminal, control sequences among it. */
  get output(): string {
    return this.#output;
  }

  /** Whether it shows the screen that programs have for themselves. */
  get isAlternate(): boolean {
    return this.#screen.buffer.active.type === 'alternate';
  }

  /** The lines that a person sees. */
  get lines(): readonly string[] {
    const { active } = this.#screen.buffer;
    return Array.from({ length: this.#screen.rows }, (_row, i) =>
      (active.getLine(active.viewportY + i)?.translateToString(true) ?? '').trimEnd(),
    );
  }

  /** What stands where on the screen, and how it looks. */
  get cells(): readonly (readonly Cell[])[] {
    const { active } = this.#screen.buffer;
    return Array.from({ length: this.#screen.rows }, (_row, i) => {
      const line = active.getLine(active.viewportY + i);
      return Array.from({ length: this.#screen.cols }, (_column, x): Cell => {
        const cell = line?.getCell(x);
        return {
          text: cell?.getChars() ?? '',
          ...(cell?.isFgPalette() === true && { colour: cell.getFgColor() % 8 }),
          isBold: cell?.isBold() !== 0,
          isDim: cell?.isDim() !== 0,
          isInverse: cell?.isInverse() !== 0,
        };
      });
    });
  }

  type(text: string): void {
    this.#ask({ text });
  }

  resize({ columns, rows }: TerminalSize): void {
    this.#screen.resize(columns, rows);
    this.#ask({ columns, rows });
  }

  signal(number: number): void {
    this.#ask({ signal: number });
  }

  /** Waits until a person sees this. */
  async shows(what: RegExp, timeoutMs = 60_000): Promise<void> {
    await eventually(() => what.test(this.lines.join('\n')), {
      timeoutMs,
      describe: () => `${String(what)} on the screen:\n${this.lines.join('\n')}`,
    });
  }

  /** Waits for the end of the command; resolves with its exit code. */
  async ended(): Promise<number | null> {
    await this.#ended;
    await this.#written;
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin?.end();
    await this.#ended;
    this.#screen.dispose();
  }

  #ask(request: object): void {
    this.#child.stdin?.write(`${JSON.stringify(request)}\n`);
  }
}
