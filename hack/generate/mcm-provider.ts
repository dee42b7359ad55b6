import { readFile } from 'node:fs/promises';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../..');
const EXAMPLE = 'examples/drivers/go';
const LIBRARY = 'packages/mcm-provider';

/** What a driver in Go has as a program, and the library for providers of the original as a package: one text, so that both are mended. */
const SHARED = ['fencing.go', 'serve.go', 'contract/driver.pb.go', 'contract/driver_grpc.pb.go'] as const;

/** Files of the library that are those of the example under other names. */
export async function mcmProviderFiles(): Promise<readonly (readonly [file: string, text: string])[]> {
  return await Promise.all(
    SHARED.map(async (file): Promise<readonly [file: string, text: string]> => {
      const text = await readFile(path.join(ROOT, EXAMPLE, file), 'utf8');
      return [path.join(LIBRARY, file), asLibrary(text, file)];
    }),
  );
}

function asLibrary(text: string, file: string): string {
  if (file.startsWith('contract/')) return text;
  const renamed = text
    .replace(/^package main$/m, 'package mcmprovider')
    .replaceAll('example.com/folder-driver/contract', 'machinist.example/mcm-provider/contract');
  return `// Code generated from ${EXAMPLE}/${file} by npm run generate. DO NOT EDIT.\n\n${renamed}`;
}
