// A program over leveldb-sharp: make PATH writes a database, use PATH reads it.
using System;
using LevelDB;

class Program {
    static void Main(string[] arguments) {
        if (arguments[0] == "make") Make(arguments[1]);
        else Use(arguments[1]);
    }

    static Options OptionsOf(bool create) {
        return new Options {
            CreateIfMissing = create, WriteBufferSize = 100000, BlockSize = 2048,
            BlockCache = new Cache(1 << 20), Compression = CompressionType.SnappyCompression,
        };
    }

    static void Make(string path) {
        Refused(() => new DB(OptionsOf(false), path).Dispose());
        var db = new DB(OptionsOf(true), path);
        for (int i = 0; i < 20000; i++) db.Put("key" + i % 5000, "value " + i);
        for (int i = 0; i < 5000; i += 7) db.Delete("key" + i);
        var batch = new WriteBatch();
        batch.Put("batch 1", "one").Put("batch 2", "two").Delete("batch 1");
        db.Write(new WriteOptions { Sync = true }, batch);
        var before = db.CreateSnapshot();
        db["batch 2"] = "other";
        db.Put("batch 3", "");
        var then = new ReadOptions { Snapshot = before, FillCache = false, VerifyChecksums = true };
        Console.WriteLine("{0} {1} {2}", db.Get(then, "batch 2"), db["batch 2"], db.Get(then, "batch 3") ?? "none");
        Refused(() => new DB(OptionsOf(true), path).Dispose());
        db.Dispose();
        var options = OptionsOf(true);
        options.ErrorIfExists = true;
        Refused(() => new DB(options, path).Dispose());
    }

    static void Use(string path) {
        var db = new DB(OptionsOf(false), path);
        var iterator = new Iterator(db, new ReadOptions());
        while (iterator.MoveNext()) Console.WriteLine(iterator.Current);
        iterator.Seek("key25");
        for (int i = 0; i < 5; i++, iterator.Previous()) Console.WriteLine(iterator.Current);
        iterator.SeekToLast();
        Console.WriteLine("{0} {1}", iterator.Key, iterator.Value);
        iterator.Next();
        Console.WriteLine(iterator.IsValid);
        iterator.Dispose();
        iterator = null;
        GC.Collect();
        GC.WaitForPendingFinalizers();
        db.Put("passing", "by");
        db.Delete("passing");
        Console.WriteLine(db.Get("passing") ?? "none");
        db.Compact();
        Console.WriteLine(db.Get("key4999"));
        Console.WriteLine(db.GetProperty("leveldb.nothing") ?? "no such property");
        db.Dispose();
        DB.Repair(OptionsOf(false), path);
        db = new DB(OptionsOf(false), path);
        Console.WriteLine(db.Get("key4999"));
        db.Dispose();
    }

    // The kind of failure; its text names files, and these are each engine's own.
    static void Refused(Action action) {
        try {
            action();
            Console.WriteLine("it went well");
        } catch (ApplicationException error) {
            Console.WriteLine(error.Message.Split(':')[0]);
        }
    }
}
