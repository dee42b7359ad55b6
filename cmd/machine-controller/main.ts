import { runProgram } from '../machinist/command-line.ts';

await runProgram('machine-controller', process.argv.slice(2));
