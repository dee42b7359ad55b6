import { execFile } from 'node:child_process';
import { glob, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const ROOT = path.resolve(import.meta.dirname, '../..');
const BUF = createRequire(import.meta.url).resolve('@bufbuild/buf/bin/buf');

/** Where the TypeScript of each contract goes. */
const CONTRACTS: readonly { readonly folder: string; readonly protos: readonly string[] }[] = [
  { folder: 'pkg/driver/grpc/gen', protos: ['proto/machine', 'proto/grpc'] },
  { folder: 'pkg/autoscaler/gen', protos: ['proto/clusterautoscaler'] },
  { folder: 'pkg/worlds/ironcore/runtime/gen', protos: ['proto/ironcore'] },
];

/** The TypeScript of the contracts, as buf.gen.yaml says: path from the project's root → text. Works offline. */
export async function contractFiles(): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for (const { folder, protos } of CONTRACTS) {
    const directory = await mkdtemp(path.join(tmpdir(), 'buf-'));
    try {
      await runBuf('generate', '--output', directory, ...protos.flatMap((proto) => ['--path', proto]));
      const generated = path.join(directory, 'gen');
      for await (const file of glob('**/*.ts', { cwd: generated })) {
        files.set(path.join(folder, file), await readFile(path.join(generated, file), 'utf8'));
      }
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }
  return files;
}

async function runBuf(...args: readonly string[]): Promise<void> {
  await execute(process.execPath, [BUF, ...args], { cwd: ROOT });
}
